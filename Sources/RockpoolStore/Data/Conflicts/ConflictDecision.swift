// The decisions about an operation in conflict, and the revision they may lead to (docs/outbox.md#decisions, docs/outbox.md#keys).
import RockpoolCore

/// A decision about an operation in conflict, by its strategy or by a person.
package enum ConflictDecision: Hashable, Sendable {
    /// The operation is sent again in changed form: in its place in the lane, under another key.
    case resend(RequestRevision)
    /// Theirs stands: the operation ends as `superseded`, reason `yielded`.
    case yield
    /// The upstream shows the operation's effect already: it ends as `delivered`, reason `probed`.
    /// - Parameter differsFromMine: as in `RequestRevision`.
    case delivered(differsFromMine: Bool)

    var state: OperationState {
        switch self {
        case .resend: .pending
        case .yield: .superseded
        case .delivered: .delivered
        }
    }

    var reason: OperationReason? {
        switch self {
        case .resend: nil
        case .yield: .yielded
        case .delivered: .probed
        }
    }

    /// True if the entity becomes different from the state that later writes were built on.
    var leavesMine: Bool {
        switch self {
        case .resend(let revision): revision.differsFromMine
        case .yield: true
        case .delivered(let differsFromMine): differsFromMine
        }
    }
}
