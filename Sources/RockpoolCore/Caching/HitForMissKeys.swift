// What is remembered of keys that have no stored response: that it could not be shared, how often it was asked for, and why none is stored.
import DequeModule

/// A set of uncollapsible keys, limited in size and time. Recording a key again does not extend its time: once per span one request leads,
/// and shows whether sharing has become possible.
package struct HitForMissKeys: Sendable {
    /// Number of keys; beyond it the oldest is dropped. At 24 bytes plus a hash table entry each, about 200 KiB.
    package static let defaultCount = 4096
    /// The time for which a key is remembered.
    package static let defaultSpan = TimeSpan.seconds(120)

    private let limit: Int
    private let span: TimeSpan
    /// Only the key's hash is stored, so that long URLs take no space. A hash collision merely disables collapsing for a while.
    private var moments: [Int: Timestamp] = [:]
    /// In order of insertion, for expiry; at most `limit`.
    private var order: Deque<(hash: Int, moment: Timestamp)> = []

    /// - Parameter limit: Number of keys, at least 1.
    package init(limit: Int = defaultCount, span: TimeSpan = defaultSpan) {
        self.limit = max(1, limit)
        self.span = span
    }

    /// Keys held, including expired ones not yet removed.
    package var count: Int { order.count }

    /// Records that a response for `key` could not be shared.
    package mutating func note(_ key: CacheKey, now: Timestamp) {
        while let oldest = order.first, !isLive(oldest.moment, now: now) { forgetOldest() }
        guard !contains(key, now: now) else { return }
        while order.count >= limit { forgetOldest() }
        moments[key.hashValue] = now
        order.append((key.hashValue, now))
    }

    /// True if requests for `key` should be forwarded immediately.
    package func contains(_ key: CacheKey, now: Timestamp) -> Bool {
        moments[key.hashValue].map { isLive($0, now: now) } ?? false
    }

    /// A time in the future, after the clock was set back, counts as expired; otherwise the key would be remembered indefinitely.
    private func isLive(_ moment: Timestamp, now: Timestamp) -> Bool { moment <= now && now - moment < span }

    private mutating func forgetOldest() {
        guard let oldest = order.popFirst() else { return }
        // If the key was recorded again after the clock was set back, its later line in `order` expires it.
        if moments[oldest.hash] == oldest.moment { moments[oldest.hash] = nil }
    }
}

/// Counts of requests by key, bounded (docs/caching.md#categories, `min_uses`): of two generations, each of up to `capacity` keys, the
/// older one is forgotten when the newer is full.
package struct UseCounts: Sendable {
    private let capacity: Int
    private var newer: [Int: Int] = [:]
    private var older: [Int: Int] = [:]

    /// Counts up to twice `capacity` keys, about 32 bytes each.
    package init(capacity: Int) { self.capacity = capacity }

    /// Counts a request, and returns the number of requests for the key that are remembered, this one included.
    package mutating func count(_ key: String) -> Int {
        // A rare equal hash only stores a response early.
        let hash = key.hashValue
        if newer[hash] == nil, newer.count >= capacity { (older, newer) = (newer, [:]) }
        newer[hash, default: 0] += 1
        return (newer[hash] ?? 0) + (older[hash] ?? 0)
    }
}

/// The last event of each URL that recently had one (docs/reference/admin-api.md#explain *explain*).
package struct KeyEvents: Sendable {
    package enum Event: Hashable, Sendable {
        case stored
        /// Stored in place of a previous entry.
        case replaced
        /// Not stored, with the reason as named by `Storability.Reason` or by the store.
        case notStored(String)
        /// Evicted to free space.
        case evicted
        /// Removed by an operator's purge.
        case purged
        /// Removed by a cleanup: past its offline window, or damaged.
        case cleanedUp

        /// The event's name, one word.
        package var name: String {
            switch self {
            case .stored: "stored"
            case .replaced: "replaced"
            case .notStored: "not-stored"
            case .evicted: "evicted"
            case .purged: "purged"
            case .cleanedUp: "cleaned-up"
            }
        }

        /// The reason, for events that have one.
        package var reason: String? {
            if case .notStored(let reason) = self { reason } else { nil }
        }
    }

    package struct Record: Hashable, Sendable {
        package var event: Event
        package var at: Timestamp
    }

    /// Minimum number of URLs remembered; the maximum is twice as many.
    package static let minimumCount = 4096

    // Keyed by hash: URLs are long, and a collision among a few thousand is improbable.
    private var young: [Int: Record] = [:]
    private var old: [Int: Record] = [:]

    package init() {}

    /// Records an event. When the limit is exceeded, the older half is dropped.
    package mutating func note(_ event: Event, of url: String, at now: Timestamp) {
        if young.count >= Self.minimumCount { (old, young) = (young, [:]) }
        young[url.hashValue] = Record(event: event, at: now)
    }

    /// The last event of `url`; nil if none is recorded.
    package func last(of url: String) -> Record? { young[url.hashValue] ?? old[url.hashValue] }
}
