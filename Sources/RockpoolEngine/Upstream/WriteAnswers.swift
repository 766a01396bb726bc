// The kind of response that each upstream gives to writes, for the detection of captive portals (docs/outbox.md#portals).
import Synchronization

/// Records which upstreams have answered writes without a portal's sign.
final class WriteAnswers: Sendable {
    private let seen = Mutex<Set<String>>([])

    func note(_ upstream: String) { seen.withLock { _ = $0.insert(upstream) } }

    /// True if a page in answer to a write would be unusual for the upstream.
    func areKnown(_ upstream: String) -> Bool { seen.withLock { $0.contains(upstream) } }
}
