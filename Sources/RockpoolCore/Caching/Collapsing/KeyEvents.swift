// The last storage event of each URL, so that `explain` can report why nothing is stored (docs/reference/admin-api.md#explain *explain*).

/// The last event of each URL that recently had one.
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
