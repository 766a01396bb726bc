// What happened last to what might be stored for a URL, for people who ask why nothing is (contract §5 *explain*).

/// The last event of each of the URLs that had one lately.
package struct KeyEvents: Sendable {
    package enum Event: Hashable, Sendable {
        case stored
        /// Stored in place of what was there.
        case replaced
        /// Not stored, and why, in the words of `Storability.Reason` and of the store.
        case notStored(String)
        /// Gone to make room.
        case evicted
        /// Taken away by hand.
        case purged
        /// Gone in a cleanup: past its window, or damaged.
        case cleanedUp

        /// In one word.
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

        /// Why, where the word leaves that open.
        package var reason: String? {
            if case .notStored(let reason) = self { reason } else { nil }
        }
    }

    package struct Record: Hashable, Sendable {
        package var event: Event
        package var at: Timestamp
    }

    /// URLs that are remembered at least; at most twice as many.
    package static let limit = 4096

    // By hash: a URL is long, and no two of a few thousand share one.
    private var young: [Int: Record] = [:]
    private var old: [Int: Record] = [:]

    package init() {}

    /// Remembers an event. The oldest half is forgotten when there are too many.
    package mutating func note(_ event: Event, of url: String, at now: Timestamp) {
        if young.count >= Self.limit { (old, young) = (young, [:]) }
        young[url.hashValue] = Record(event: event, at: now)
    }

    /// The last event of `url`; nil where none is remembered.
    package func last(of url: String) -> Record? { young[url.hashValue] ?? old[url.hashValue] }
}
