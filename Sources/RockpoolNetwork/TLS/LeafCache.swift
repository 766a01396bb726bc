// Which TLS context a host's handshake gets again, and when it must be made anew (design §6 *TLS interception*).
import RockpoolCore

/// The latest contexts by host. `Authority` tells one certificate authority from the next.
struct LeafCache<Authority: Equatable, Context> {
    private struct Entry {
        let context: Context
        let freshUntil: Timestamp
        var lastUse: UInt64
    }

    /// Hosts remembered.
    let limit: Int
    /// Half of what is left of a leaf's life when it is made: it never comes near its end.
    private let freshness: TimeSpan
    private var authority: Authority?
    private var entries: [String: Entry] = [:]
    private var uses: UInt64 = 0

    init(limit: Int, freshness: TimeSpan) {
        self.limit = limit
        self.freshness = freshness
    }

    var count: Int { entries.count }

    /// The context for `host` by this authority; nil when one must be made.
    mutating func context(for host: String, by authority: Authority, now: Timestamp) -> Context? {
        guard self.authority == authority, let entry = entries[host], now < entry.freshUntil else { return nil }
        // A clock set back would leave a leaf that is not valid yet.
        guard entry.freshUntil - now <= freshness else { return nil }
        uses += 1
        entries[host]?.lastUse = uses
        return entry.context
    }

    /// Keeps a context that was just made. Another authority's are forgotten, and at the limit the one unused for longest.
    mutating func keep(_ context: Context, for host: String, by authority: Authority, now: Timestamp) {
        if self.authority != authority {
            self.authority = authority
            entries = [:]
        }
        if entries.count >= limit, entries[host] == nil, let oldest = entries.min(by: { $0.value.lastUse < $1.value.lastUse })?.key {
            entries[oldest] = nil
        }
        uses += 1
        entries[host] = Entry(context: context, freshUntil: now + freshness, lastUse: uses)
    }
}
