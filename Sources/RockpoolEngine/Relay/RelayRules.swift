// Rules of relays by the shapes of their requests, bounded in number (docs/architecture.md#relays).
import HTTPTypes
import RockpoolCore
import Synchronization

/// The state of everything that the decision of a pipeline stands on, but for what is looked up for each request.
struct RelayValidity {
    var until: Timestamp
    /// The state of the upstreams (`ReachabilityTable.epoch`).
    var epoch: UInt64
    /// Removals in the cache (`CacheStore.hotMoment`), before anything was read.
    var moment: UInt64
    /// The places of the keys, and of the credential, that the request is looked up by.
    var slots: [Int]
}

/// The rules of one kind.
final class RelayRules<Rule: Sendable>: Sendable {
    /// Maximum number of rules; above it those that have expired are dropped, or else all.
    private static var limit: Int { 1024 }

    private let rules = Mutex<[RequestShape: Rule]>([:])
    private let expiry: @Sendable (Rule) -> Timestamp

    /// - Parameter expiry: when a rule is to be learned anew.
    init(expiry: @escaping @Sendable (Rule) -> Timestamp) { self.expiry = expiry }

    var isEmpty: Bool { rules.withLock { $0.isEmpty } }

    subscript(shape: RequestShape) -> Rule? { rules.withLock { $0[shape] } }

    func forget(_ shape: RequestShape) { rules.withLock { $0[shape] = nil } }

    func keep(_ rule: Rule, as shape: RequestShape, at now: Timestamp) {
        rules.withLock { rules in
            if rules.count >= Self.limit { rules = rules.filter { expiry($0.value) > now } }
            if rules.count >= Self.limit { rules.removeAll() }
            rules[shape] = rule
        }
    }
}

/// The patterns of the responses to the requests of one rule.
struct RelayTemplates {
    /// Maximum number; beyond it the oldest is forgotten.
    private static let limit = 4
    /// Maximum number of kinds of replies that are remembered without their patterns.
    private static let seenLimit = 16

    private(set) var all: [RelayTemplate] = []
    /// The fields of replies that were seen once.
    private var seen: [HTTPFields] = []

    init() {}

    /// - Parameter reply: a reply to one of the requests.
    init(after reply: ResponseHead) { seen = [RelayTemplate.shared(reply.fields)] }

    /// Takes the pattern of a reply of a kind that was seen before: a kind of its own URL alone would displace others.
    mutating func learnAgain(_ template: RelayTemplate) {
        if seen.contains(template.fields) { return learn(template) }
        if seen.count == Self.seenLimit { seen.removeFirst() }
        seen.append(template.fields)
    }

    mutating func learn(_ template: RelayTemplate) {
        guard !all.contains(where: { $0.agrees(with: template) }) else { return }
        if all.count == Self.limit { all.removeFirst() }
        all.append(template)
    }
}
