// What other nodes of a fleet have done, for the replayer, the overlay, the copies and the identities of this one (docs/fleet.md#reads).
import RockpoolCore
import RockpoolStore
import ServiceLifecycle

/// Publishes the changes of other nodes as this node's own are. Make it before the outbox is read, so that nothing is missed.
package final class FleetFeed: Service {
    private let notifier: OutboxNotifier
    private let deliveries: DeliveryEffects
    private let updates: EntryUpdates
    private let parents: SiteParents
    private let credentials: Credentials
    private let active: ActiveConfiguration
    private let changes: AsyncStream<ForeignChanges>

    init(
        deliveries: DeliveryEffects, notifier: OutboxNotifier, updates: EntryUpdates, parents: SiteParents, credentials: Credentials,
        active: ActiveConfiguration
    ) {
        (self.deliveries, self.notifier, self.updates, self.parents) = (deliveries, notifier, updates, parents)
        (self.credentials, self.active) = (credentials, active)
        let (stream, continuation) = AsyncStream.makeStream(of: ForeignChanges.self)
        changes = stream
        // At once: what waits for this transaction reads its own writes.
        deliveries.data.onForeignChanges { [notifier] change in
            for operation in change.gone { notifier.forget(operation) }
            for operation in change.renumbered { notifier.forgetNumber(of: operation) }
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
        for operation in change.writes.filter({ $0.state == .delivered }).byEnd {
            parents.noteWrite(to: operation.request.origin)
            await deliveries.note(operation) { [updates] answer, request in await updates.invalidate(after: answer, to: request) }
            notifier.tell(operation)
        }
        for case .url(let url) in change.stale {
            if let origin = try? RequestHead(url: url).origin { parents.noteWrite(to: origin) }
        }
        if !change.stale.isEmpty { await updates.invalidate(Array(change.stale)) }
        if change.hasProofs { credentials.restore(active.configuration.upstreams) }
        notifier.events.wake()
    }
}
