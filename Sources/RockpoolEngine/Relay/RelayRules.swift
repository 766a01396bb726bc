// Rules of relays by their requests, bounded in number (docs/architecture.md#relays).
import RockpoolCore
import Synchronization

/// The rules of one kind, by the hash of their requests.
final class RelayRules<Rule: Sendable>: Sendable {
    /// Maximum number of rules; above it those that have expired are dropped, or else all.
    private static var limit: Int { 1024 }

    private let rules = Mutex<[Int: Rule]>([:])
    private let expiry: @Sendable (Rule) -> Timestamp

    /// - Parameter expiry: when a rule is to be learned anew.
    init(expiry: @escaping @Sendable (Rule) -> Timestamp) { self.expiry = expiry }

    var isEmpty: Bool { rules.withLock { $0.isEmpty } }

    subscript(hash: Int) -> Rule? { rules.withLock { $0[hash] } }

    func forget(_ hash: Int) { rules.withLock { $0[hash] = nil } }

    func keep(_ rule: Rule, as hash: Int, at now: Timestamp) {
        rules.withLock { rules in
            if rules.count >= Self.limit { rules = rules.filter { expiry($0.value) > now } }
            if rules.count >= Self.limit { rules.removeAll() }
            rules[hash] = rule
        }
    }
}
