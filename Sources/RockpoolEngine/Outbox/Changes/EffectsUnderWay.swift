// Deliveries that have ended in the outbox and are not yet in the copies (docs/outbox.md#effects).
import RockpoolCore
import RockpoolStore
import Synchronization

/// The lanes in which the effects of a client's delivery are being noted. The next write of that client waits for them, because otherwise it
/// would build on the copy from before the delivery.
final class EffectsUnderWay: Sendable {
    private let lanes = Mutex<[ClientLane: Int]>([:])

    /// Runs `work`, which ends an operation and notes its effects; publish the new state after it: that event ends the wait.
    func during<Result>(_ operation: QueuedWrite?, _ work: () async throws -> Result) async rethrows -> Result {
        guard let operation else { return try await work() }
        let lane = ClientLane(upstream: operation.upstream, name: operation.lane, principal: operation.principal)
        lanes.withLock { $0[lane, default: 0] += 1 }
        defer {
            lanes.withLock { lanes in
                let count = (lanes[lane] ?? 1) - 1
                lanes[lane] = count == 0 ? nil : count
            }
        }
        return try await work()
    }

    func contains(upstream: String, lane: String, principal: String?) -> Bool {
        lanes.withLock { $0[ClientLane(upstream: upstream, name: lane, principal: principal)] != nil }
    }
}

extension OutboxNotifier {
    /// Waits until the last delivery of the same client in the lane is in its copies, on which `operation` then builds.
    func effectsAreNoted(before operation: QueuedWriteDraft, within limit: Duration) async {
        let deadline = ContinuousClock.now + limit
        while true {
            let version = events.version
            guard effectsUnderWay.contains(upstream: operation.upstream, lane: operation.lane, principal: operation.principal),
                await events.change(after: version, before: deadline)
            else { return }
        }
    }
}
