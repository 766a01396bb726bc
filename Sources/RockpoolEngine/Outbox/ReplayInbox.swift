// What has changed in the outbox since the replayer last looked.
package import RockpoolCore
import RockpoolStore
import Synchronization

/// Accepted and steered operations on their way to the replayer, which alone steps the machine.
final class ReplayInbox: Sendable {
    private let events = Mutex<[ReplayMachine.Event]>([])

    func put(_ event: ReplayMachine.Event) { events.withLock { $0.append(event) } }

    func take() -> [ReplayMachine.Event] {
        events.withLock { events in
            defer { events = [] }
            return events
        }
    }
}

extension Engine {
    /// Remembers after a start which writes reads must still show.
    /// - Throws: `DataStoreError` when the outbox cannot be read.
    package func recallWrites() async throws {
        overlay.load(try await data.deliveredEntities(since: now() - retention.delivered))
        for operation in try await data.openOperations() { _ = overlay.note(operation) }
    }

    /// Lets what comes after an operation in its lane wait.
    func hold(_ operation: RockpoolCore.Operation, until moment: Timestamp) {
        laneHolds.hold(
            operation.upstream, operation.lane, byProved: credentials.isProved(operation.principal), until: moment, now: now())
    }

    /// Until when what comes after an operation that has ended must wait, because an attempt of it may still run.
    func laneHold(after operation: RockpoolCore.Operation) -> Timestamp? {
        guard operation.state.hasEnded, let upstream = routes.upstream(named: operation.upstream) else { return nil }
        return ReplayContext(upstream).holdsLane(after: operation, isDelivered: operation.state == .delivered, now: now())
    }

    /// Makes everything that waits for time due now.
    /// - Returns: how many that were. - Throws: `DataStoreError`.
    package func flush() async throws -> Int {
        let count = try await data.makeAllDue(now: now())
        for operation in try await data.openOperations() where operation.state == .pending {
            inbox.put(.changed(OperationSummary(operation)))
        }
        events.wake()
        return count
    }

    /// Tells everyone that an operation which was open is gone: it holds nothing back any more, and shows in no read.
    func forget(_ operation: RockpoolCore.Operation) {
        var ended = operation
        ended.state = .cancelled
        tell(ended)
    }

    /// Tells everyone how an operation stands now: the replayer, the reads it must show in, and whoever listens.
    /// - Parameter toReplayer: false from the replayer itself, which knows.
    package func tell(_ operation: RockpoolCore.Operation, toReplayer: Bool = true) {
        if toReplayer { inbox.put(.changed(OperationSummary(operation))) }
        if overlay.note(operation) { cache.forgetHot() }
        if let moment = laneHold(after: operation) { hold(operation, until: moment) }
        events.tell(.operation(id: operation.id, state: operation.state))
    }
}
