// The kind of response that each upstream gives to writes, for the detection of captive portals (docs/reference/behaviour.md#reachability).
import Synchronization

/// Records whether each upstream has answered writes with a page in place of JSON, as some do.
final class WriteAnswers: Sendable {
    private let seen = Mutex<[String: (own: Bool, odd: Bool)]>([:])

    func note(isOdd: Bool, _ upstream: String) {
        seen.withLock { seen in
            if isOdd { seen[upstream, default: (false, false)].odd = true } else { seen[upstream, default: (false, false)].own = true }
        }
    }

    /// True if a page in response to a write would be unusual for the upstream.
    func isOdd(_ upstream: String) -> Bool { seen.withLock { $0[upstream].map { $0.own && !$0.odd } ?? false } }
}
