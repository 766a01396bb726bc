// The decisions about an operation in conflict, and the revision they may lead to (docs/outbox.md#decisions, docs/outbox.md#keys).
package import RockpoolCore

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

/// The next revision of an operation. Its id, place, principal, client key and fingerprint stay those it was accepted with.
package struct RequestRevision: Hashable, Sendable {
    package var request: RequestHead
    /// A blob must be finished; the operation references it from now on.
    package var body: OperationBody
    /// A new key: no key is used with two payloads.
    package var idempotencyKey: String
    /// The new base: theirs. At most 1 MiB.
    package var base: Conflict.Side?
    /// The strong ETag of theirs; nil where it has none.
    package var baseETag: String?
    /// True if the result differs from the operation's intent: later operations built on it then lose their base.
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
