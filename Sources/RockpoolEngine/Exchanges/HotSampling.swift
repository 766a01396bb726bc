// Which hits of the fast path are recorded and measured (docs/reference/admin-api.md#requests).
import RockpoolCore

/// The sampling of one event loop: every hit while there are few, one of many else. A hit that is not recorded costs two additions.
struct HotSampling {
    /// Hits of one loop that are all recorded within one second. Of further ones, one in `stride` is recorded.
    static let fullRate = 200
    /// See `fullRate`; a power of two.
    static let stride = 1024

    /// The end of the current second.
    private var until = Timestamp.distantPast
    /// Hits in the current second.
    private var count = 0
    /// Hits since the last record, which stands for them.
    private var unrecorded = 0

    /// True if the next hit is recorded.
    func isDue(at now: Timestamp) -> Bool {
        now >= until || count < Self.fullRate || (count &+ 1) & (Self.stride - 1) == 0
    }

    /// Counts a hit that is not recorded.
    mutating func skip() {
        count &+= 1
        unrecorded &+= 1
    }

    /// Counts a hit that is recorded.
    /// - Returns: The number of hits that the record stands for.
    mutating func take(at now: Timestamp) -> Int {
        if now >= until || until - now > .seconds(1) { (until, count) = (now + .seconds(1), 0) }
        count &+= 1
        defer { unrecorded = 0 }
        return unrecorded + 1
    }
}
