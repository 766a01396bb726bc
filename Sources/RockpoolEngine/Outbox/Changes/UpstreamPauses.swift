// The pauses that upstreams demand by 429 and 503, as the replayer keeps them (docs/outbox.md#gate).
import RockpoolCore
import Synchronization

/// The end of the pause of each upstream.
final class UpstreamPauses: Sendable {
    private let ends = Mutex<[String: Timestamp]>([:])

    /// Replaces all of them by the replayer's.
    func replace(by pauses: [String: Timestamp]) { ends.withLock { $0 = pauses } }

    func end(_ upstream: String) { ends.withLock { $0[upstream] = nil } }

    /// Returns the pauses that have not ended.
    func current(now: Timestamp) -> [String: Timestamp] { ends.withLock { $0.filter { $0.value > now } } }
}
