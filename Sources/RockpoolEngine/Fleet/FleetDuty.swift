// What a node of a fleet may send, and who has what in flight (docs/fleet.md#leases).
import RockpoolCore
import RockpoolStore
import ServiceLifecycle

/// The replayer's view of its fleet. Without one, everything is permitted and nothing is elsewhere.
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
