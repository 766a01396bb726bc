// What becomes of an operation that met another change, once that is decided (outbox.md §1.6, §1.7).
package import RockpoolCore

/// A decision about an operation in conflict, by its strategy or by a person.
package enum ConflictDecision: Hashable, Sendable {
    /// It is sent again, changed: in its place, under another key.
    case resend(RequestRevision)
    /// Theirs stands: the operation ends as `superseded`, reason `yielded`.
    case yield
    /// The upstream shows its effect already: it ends as `delivered`, reason `probed`.
    /// - Parameter differsFromMine: as of `RequestRevision`.
    case delivered(differsFromMine: Bool)

    var state: OperationState {
        switch self {
        case .resend: .pending
        case .yield: .superseded
        case .delivered: .delivered
        }
    }

    /// Whether the entity becomes something else than what later writes were built on.
    var leavesMine: Bool {
        switch self {
        case .resend(let revision): revision.differsFromMine
        case .yield: true
        case .delivered(let differsFromMine): differsFromMine
        }
    }
}

/// An operation's next revision. What it was accepted as stays: its id, its place, its principal, its client's key and fingerprint.
package struct RequestRevision: Hashable, Sendable {
    package var request: RequestHead
    /// A blob must have been finished, and is named from here on.
    package var body: OperationBody
    /// A new one: a key is never used with another payload.
    package var idempotencyKey: String
    /// What it stands on now: theirs. At most 1 MiB.
    package var base: Conflict.Side?
    /// The strong ETag of theirs; nil where it has none.
    package var baseETag: String?
    /// Whether the result is not what the operation meant: then the later ones that build on it no longer do.
    package var differsFromMine: Bool

    package init(
        request: RequestHead, body: OperationBody, idempotencyKey: String, base: Conflict.Side?, baseETag: String?, differsFromMine: Bool
    ) {
        self.request = request
        self.body = body
        self.idempotencyKey = idempotencyKey
        self.base = base
        self.baseETag = baseETag
        self.differsFromMine = differsFromMine
    }
}
