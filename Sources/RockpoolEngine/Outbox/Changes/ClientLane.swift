// A lane as one client has it (docs/outbox.md#lanes).
import RockpoolStore

/// The writes of one client in a lane.
struct ClientLane: Hashable {
    var upstream: String
    var name: String
    var principal: String?
}

extension ClientLane {
    init(_ operation: QueuedWriteDraft) {
        self.init(upstream: operation.upstream, name: operation.lane, principal: operation.principal)
    }
}
