// The reasons for a state (docs/outbox.md#states).

/// The reason for the state.
package enum OperationReason: String, CaseIterable, Sendable, Codable {
    case rejected, exhausted, expired, unmapped, tooOld = "too_old"
    /// The database of its fleet does not take it, so that only this node has it.
    case unshared
    /// The time for which its signature is accepted has passed.
    case signatureExpired = "signature-expired"
    /// Its stored body is missing, or is not what its name says.
    case damaged
    case auth, paused, redirected
    case lostAnswer = "lost_answer", crashed
    /// The kind of a conflict, as `Conflict.Kind` names it.
    case editEdit = "edit-edit", editDelete = "edit-delete", deleteEdit = "delete-edit", createCreate = "create-create"
    /// Ended by a person, or squashed into a later one.
    case discarded, cancelled, edited, squashed
    case accepted, alreadyGone = "already_gone"
    /// A probe of the upstream found its effect.
    case probed
    /// The upstream's state was kept instead of the write.
    case yielded
}
