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

/// The replayer's view of its fleet. Without one, everything is permitted and nothing is elsewhere (docs/fleet.md#leases).
struct FleetDuty: Sendable {
    let data: DataStore
    let renewal: CredentialRenewal
    let active: ActiveConfiguration

    /// True if this node can send an operation now: its lease holds, and it has a live credential of the principal. Another node may have
    /// it: none parks what it cannot send.
    func permits(_ operation: OperationSummary?) -> Bool {
        guard data.fleet != nil else { return true }
        guard let operation, let principal = operation.principal else { return data.maySend }
        return data.maySend && renewal.canSend(as: principal, to: active.routes.upstream(named: operation.upstream))
    }

    /// Returns the event with the place of an operation in flight: here, or at another node.
    func located(_ event: ReplayMachine.Event) -> ReplayMachine.Event {
        func located(_ summary: OperationSummary) -> OperationSummary {
            var summary = summary
            summary.isSentElsewhere = summary.state == .inflight && data.isSentElsewhere(summary.sequence)
            return summary
        }
        return switch event {
        case .changed(let summary): .changed(located(summary))
        case .reread(let summary): .reread(located(summary))
        case .settled(let summary): .settled(located(summary))
        default: event
        }
    }

    /// Repeats the recording of an outcome while the fleet's database is away: the outcome is known here only.
    func keeping(_ record: () async throws -> QueuedWrite) async throws -> QueuedWrite {
        while true {
            do { return try await record() } catch DataStoreError.away where !Task.isCancelled && !Task.isShuttingDownGracefully {
                try await Task.sleep(for: .milliseconds(500))
            }
        }
    }
}

/// Runs a transfer for operations that this node has claimed; cancels it when the lease of the claim ends, and does not begin it after
/// that: the node may have been asleep since. Without a fleet it just runs (docs/fleet.md#leases).
func underLease<Result: Sendable>(
    of data: DataStore, for sequences: [Int64], _ transfer: @escaping @Sendable () async throws(TransferFailure) -> Result
) async throws(TransferFailure) -> Result {
    guard data.fleet != nil else { return try await transfer() }
    guard let end = data.leaseEnd(of: sequences), end > .now else {
        throw TransferFailure(kind: .cancelled, sent: .no, detail: "the lease of this node has ended")
    }
    let task = Task { () async -> Swift.Result<Result, TransferFailure> in
        do throws(TransferFailure) { return .success(try await transfer()) } catch { return .failure(error) }
    }
    let watch = Task {
        while !Task.isCancelled {
            guard let end = data.leaseEnd(of: sequences), end > .now else { return task.cancel() }
            try await Task.sleep(until: min(end, .now + .milliseconds(500)), clock: .continuous)
        }
    }
    defer { watch.cancel() }
    return try await withTaskCancellationHandler {
        await task.value
    } onCancel: {
        task.cancel()
    }.get()
}
