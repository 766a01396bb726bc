// What other nodes of a fleet have done, for the replayer, the overlay, the copies and the identities of this one (docs/fleet.md#reads).
import HTTPTypes
import Logging
import RockpoolCore
import RockpoolStore
import ServiceLifecycle

/// Publishes the changes of other nodes as this node's own are. Make it before the outbox is read, so that nothing is missed.
package final class FleetFeed: Service {
    private let data: DataStore
    private let notifier: OutboxNotifier
    private let outbound: OutboundWrites
    private let updates: EntryUpdates
    private let effects: OwnWriteEffects
    private let credentials: Credentials
    private let active: ActiveConfiguration
    private let logger: Logger
    private let changes: AsyncStream<ForeignChanges>

    init(
        data: DataStore, notifier: OutboxNotifier, outbound: OutboundWrites, updates: EntryUpdates, effects: OwnWriteEffects,
        credentials: Credentials, active: ActiveConfiguration, logger: Logger
    ) {
        (self.data, self.notifier, self.outbound, self.updates) = (data, notifier, outbound, updates)
        (self.effects, self.credentials, self.active, self.logger) = (effects, credentials, active, logger)
        let (stream, continuation) = AsyncStream.makeStream(of: ForeignChanges.self)
        changes = stream
        // At once: what waits for this transaction reads its own writes.
        data.onForeignChanges { [notifier] change in
            for operation in change.gone { notifier.forget(operation) }
            notifier.adoptHosts(of: change.writes.map { ($0.upstream, $0.request.origin) })
            for operation in change.writes where operation.state != .delivered { notifier.tell(operation) }
            continuation.yield(change)
        }
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            for await change in self.changes { await self.publish(change) }
        }
    }

    private func publish(_ change: ForeignChanges) async {
        let delivered = change.writes.filter { $0.state == .delivered }
        for operation in delivered.sorted(by: { ($0.endedAt ?? .distantPast, $0.sequence) < ($1.endedAt ?? .distantPast, $1.sequence) }) {
            await noteDelivery(of: operation)
            notifier.tell(operation)
        }
        if change.hasProofs { credentials.restore(active.configuration.upstreams) }
        notifier.events.wake()
    }

    /// Works a delivery of another node into this node's copies.
    private func noteDelivery(of operation: QueuedWrite) async {
        guard let endedAt = operation.endedAt, let bare = try? await outbound.bare(operation) else { return }
        var answer = operation.result?.head ?? ResponseHead(status: 204)
        await updates.invalidate(after: answer, to: bare.head)
        if operation.request.method == .post, !answer.fields.contains(.location), let local = operation.localID {
            answer.status = 201
            answer.fields[.location] = data.localIDs.mapping(of: local)?.url
        }
        let write = AnsweredWrite(
            request: bare.head, body: Array(bare.body), answer: answer, answerBody: operation.result?.body ?? [])
        guard await effects.lacks(write, partition: operation.principal, answeredAt: endedAt) else { return }
        await effects.note(write, partition: operation.principal, sentAt: operation.firstSentAt ?? operation.acceptedAt)
    }
}
