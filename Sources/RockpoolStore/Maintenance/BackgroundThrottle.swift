// Throttles background work while requests are served: short turns with pauses while the cache is in use, long turns while it is idle
// (docs/storage.md#eviction: hits are not disturbed).
import Glibc
import RockpoolCore
import Synchronization

/// The pace of eviction, cleanup and compaction in one cache.
///
/// A hit takes a fraction of a millisecond. A turn beside hits therefore takes at most about one millisecond, which is the longest delay of
/// a hit on a machine with few cores.
final class BackgroundThrottle: Sendable {
    /// The amount of work until the next check for requests.
    enum Turn: Sendable {
        /// Requests are being served.
        case short
        /// The cache is idle, or a writer waits for this work.
        case long

        /// The time after which a turn starts no further work.
        var time: Duration { self == .short ? .milliseconds(1) : .milliseconds(10) }
        /// Returns the rows of this turn, where a long turn takes `most`.
        func rows(of most: Int) -> Int { self == .short ? min(8, most) : most }
        /// Returns the pages this turn gives back, where a long turn moves `most`.
        func pages(of most: Int) -> Int { self == .short ? min(16, most) : most }
    }

    /// The pause before a short turn: the work then uses at most a fifth of one core.
    private static let rest: Duration = .milliseconds(4)
    /// How long after a lookup further lookups are expected.
    private static let patience: TimeSpan = .milliseconds(200)

    private let lookups: @Sendable () -> UInt64
    private let clock: @Sendable () -> Timestamp
    private let last: Mutex<(lookups: UInt64, changed: Timestamp?)>

    /// - Parameter lookups: returns the number of lookups in the cache so far.
    init(clock: @escaping @Sendable () -> Timestamp, lookups: @escaping @Sendable () -> UInt64) {
        self.clock = clock
        self.lookups = lookups
        last = Mutex((lookups(), nil))
    }

    /// Returns the next turn; pauses first while requests are served. Call it before each turn.
    func next() async -> Turn {
        guard isAsked else { return .long }
        try? await Task.sleep(for: Self.rest)
        return .short
    }

    /// Pauses this thread for three times `worked`, inside a long statement that cannot be suspended.
    func rest(after worked: Duration) {
        guard isAsked else { return }
        usleep(UInt32(clamping: 3 * worked.components.attoseconds / 1_000_000_000_000))
    }

    private var isAsked: Bool {
        let (count, now) = (lookups(), clock())
        return last.withLock { last in
            if count != last.lookups { last = (count, now) }
            return last.changed.map { (.zero..<Self.patience).contains(now - $0) } ?? false
        }
    }
}
