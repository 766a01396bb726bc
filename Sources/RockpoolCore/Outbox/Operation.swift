// One write taken into the outbox, and the states it goes through (outbox.md §1.2, §1.3).
import HTTPTypes

/// One accepted write. Everything needed to send it again after a crash, except credentials.
package struct Operation: Hashable, Sendable, Identifiable {
    /// Acceptance order, never reused.
    package var sequence: Int64
    /// Order within its lane: its own sequence, or the place of the operation it was edited from.
    package var place: Int64
    /// UUIDv7, public.
    package var id: String
    package var state: OperationState
    package var reason: OperationReason?
    package var request: RequestHead
    package var body: OperationBody
    /// Name of the declared upstream.
    package var upstream: String
    /// The entity's path, e.g. `/v1/notes/17`; nil when unknown.
    package var entity: String?
    /// The path of the collection the entity is in, `/v1/notes`; nil where no resource is declared.
    package var collection: String?
    /// The entity's id as the client wrote it, a local one perhaps; nil for a create and where no resource is declared.
    package var entityID: String?
    /// The local id a create was given.
    package var localID: LocalID?
    /// What the upstream calls it; nil until its create is delivered.
    package var serverID: String?
    package var lane: String
    package var idempotencyKey: String
    /// Whether the client sent the key itself; then it is forwarded verbatim.
    package var keyIsClients: Bool
    /// Whose write it is: the identity's name, nil when sent without a credential. Never the credential.
    package var principal: String?
    package var priority: Int
    /// Attempts the upstream answered; only these count toward the limit.
    package var answeredAttempts: Int
    /// Attempts that never reached it.
    package var networkAttempts: Int
    package var acceptedAt: Timestamp
    package var firstSentAt: Timestamp?
    /// When the last attempt left whose answer never came; nil when every one was answered, or sent nothing.
    package var lostAt: Timestamp?
    /// How often its effect was looked for.
    package var probes: Int
    /// Sequences of the open operations of other lanes it waits for.
    package var needs: Set<Int64>
    /// Never joined with another (`Rockpool-No-Merge`).
    package var noMerge: Bool
    /// Counts against the share of all unproved ones: no upstream had accepted a credential of its principal (`OutboxShare`).
    package var isUnproved: Bool
    /// The strong ETag of what the client could have seen.
    package var baseETag: String?
    /// The earlier operation on whose result it builds.
    package var baseSequence: Int64?
    package var nextAttemptAt: Timestamp
    package var expiresAt: Timestamp?
    package var endedAt: Timestamp?
    package var lastError: String?
    package var result: OperationResult?

    package init(
        sequence: Int64, id: String, state: OperationState = .pending, reason: OperationReason? = nil, request: RequestHead,
        body: OperationBody, upstream: String, entity: String? = nil, lane: String, idempotencyKey: String, keyIsClients: Bool = false,
        principal: String? = nil, priority: Int = 0, answeredAttempts: Int = 0, networkAttempts: Int = 0, acceptedAt: Timestamp,
        firstSentAt: Timestamp? = nil, nextAttemptAt: Timestamp, expiresAt: Timestamp? = nil, endedAt: Timestamp? = nil,
        lastError: String? = nil, result: OperationResult? = nil
    ) {
        self.sequence = sequence
        place = sequence
        probes = 0
        needs = []
        noMerge = false
        isUnproved = false
        self.id = id
        self.state = state
        self.reason = reason
        self.request = request
        self.body = body
        self.upstream = upstream
        self.entity = entity
        self.lane = lane
        self.idempotencyKey = idempotencyKey
        self.keyIsClients = keyIsClients
        self.principal = principal
        self.priority = priority
        self.answeredAttempts = answeredAttempts
        self.networkAttempts = networkAttempts
        self.acceptedAt = acceptedAt
        self.firstSentAt = firstSentAt
        self.nextAttemptAt = nextAttemptAt
        self.expiresAt = expiresAt
        self.endedAt = endedAt
        self.lastError = lastError
        self.result = result
    }
}

/// The body of an operation: in its row, or a file of `blobs/` named by its SHA-256.
package enum OperationBody: Hashable, Sendable {
    case none
    case inline([UInt8])
    case blob(sha256: String, length: Int64)

    /// Bytes of the body.
    package var length: Int64 {
        switch self {
        case .none: 0
        case .inline(let bytes): Int64(bytes.count)
        case .blob(_, let length): length
        }
    }
}

/// What the upstream answered in the end.
package struct OperationResult: Hashable, Sendable {
    package var head: ResponseHead
    /// At most 1 MiB of it.
    package var body: [UInt8]

    package init(head: ResponseHead, body: [UInt8]) {
        self.head = head
        self.body = body
    }
}

/// Where an operation stands. The same words are a CHECK of the `op` table.
package enum OperationState: String, CaseIterable, Sendable, Codable {
    case pending, inflight, uncertain, delivered, conflicted, parked, dead, cancelled, superseded

    /// Whether nothing more will happen by itself or by a person, so that the lane may go on.
    package var hasEnded: Bool {
        switch self {
        case .delivered, .cancelled, .superseded: true
        case .pending, .inflight, .uncertain, .conflicted, .parked, .dead: false
        }
    }
}

/// Why it stands there.
package enum OperationReason: String, CaseIterable, Sendable, Codable {
    case rejected, exhausted, expired, unmapped, tooOld = "too_old"
    case auth, paused, redirected
    case lostAnswer = "lost_answer", crashed
    /// What met in a conflict, as `Conflict.Kind` names it.
    case editEdit = "edit-edit", editDelete = "edit-delete", deleteEdit = "delete-edit", createCreate = "create-create"
    /// Ended by a person, or joined into a later one.
    case discarded, cancelled, edited, squashed
    case accepted, alreadyGone = "already_gone"
    /// A look at the upstream has shown that its effect was there.
    case probed
    /// Another's change stands in its place.
    case yielded
}
