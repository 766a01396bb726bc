// One live write at a time for each entity of a client (docs/outbox.md#live-writes).
import RockpoolStore
import Synchronization

/// The live writes of entities, in the order of their arrival. Two of one client that overlapped would both be conditional on the version from
/// before the first, so that the second would conflict with its own client's change.
final class EntityTurns: Sendable {
    struct Key: Hashable {
        var upstream: String
        var lane: String
        var principal: String?

        init(_ operation: QueuedWriteDraft) {
            (upstream, lane, principal) = (operation.upstream, operation.lane, operation.principal)
        }
    }

    /// The writes that wait for the one under way; no entry where none is.
    private let waiting = Mutex<[Key: [CheckedContinuation<Void, Never>]]>([:])

    /// Waits until the earlier writes of the entity have their answers. The caller must call `leave` afterwards.
    func enter(_ key: Key) async {
        await withCheckedContinuation { turn in
            let isFirst = waiting.withLock { waiting in
                guard waiting[key] != nil else {
                    waiting[key] = []
                    return true
                }
                waiting[key]?.append(turn)
                return false
            }
            if isFirst { turn.resume() }
        }
    }

    func leave(_ key: Key) {
        let next = waiting.withLock { waiting -> CheckedContinuation<Void, Never>? in
            guard let queue = waiting[key], !queue.isEmpty else {
                waiting[key] = nil
                return nil
            }
            return waiting[key]?.removeFirst()
        }
        next?.resume()
    }
}
