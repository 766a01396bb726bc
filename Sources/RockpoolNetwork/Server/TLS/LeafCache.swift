// The cache of TLS contexts by host, with their expiry (docs/architecture.md#parts *TLS interception*).
import RockpoolCore

/// The most recently used contexts by host. `Authority` distinguishes certificate authorities.
struct LeafCache<Authority: Equatable, Context> {
    private struct Entry {
        let context: Context
        let freshUntil: Timestamp
        var lastUse: UInt64
    }

    /// The maximum number of cached hosts.
    let limit: Int
    /// Half of a new leaf's remaining validity: a cached leaf never comes close to its expiry.
    private let freshness: TimeSpan
    private var authority: Authority?
    private var entries: [String: Entry] = [:]
    private var uses: UInt64 = 0

    init(limit: Int, freshness: TimeSpan) {
        self.limit = limit
        self.freshness = freshness
    }

    var count: Int { entries.count }

    /// Returns the cached context for `host` by this authority; nil when one must be created.
    mutating func context(for host: String, by authority: Authority, now: Timestamp) -> Context? {
        guard self.authority == authority, let entry = entries[host], now < entry.freshUntil else { return nil }
        // After the clock was set back, the leaf may not be valid yet.
        guard entry.freshUntil - now <= freshness else { return nil }
        uses += 1
        entries[host]?.lastUse = uses
        return entry.context
    }

    /// Stores a new context. Entries of another authority are removed, and at the limit the least recently used one.
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
