// What an entity still waits for (docs/reference/admin-api.md#sync).
import HTTPTypes

/// The state of an entity that differs from that of its upstream; nil stands for one that does not.
package enum EntityState: String, CaseIterable, Sendable {
    case pendingCreate = "pending-create"
    case pendingUpdate = "pending-update"
    case pendingDelete = "pending-delete"
    /// Its copy is known to be out of date, and is fetched with the next read.
    case pendingPull = "pending-pull"

    /// The state by the open writes to one entity: its deletion ends whatever came before, its creation holds what comes after.
    package static func of(_ writes: [QueuedWrite]) -> EntityState? {
        writes.sorted { $0.sequence < $1.sequence }.reduce(nil) { $1.localID != nil ? .pendingCreate : $1.request.method.state(after: $0) }
    }
}

extension HTTPRequest.Method {
    /// The state of an entity with a write of this method that does not create it.
    func state(after earlier: EntityState?) -> EntityState {
        if self == .delete { return .pendingDelete }
        return earlier == .pendingCreate ? .pendingCreate : .pendingUpdate
    }
}
