// One write taken into the outbox, and the states it goes through (outbox.md §1.2, §1.3).
import HTTPTypes

/// One accepted write. Everything needed to send it again after a crash, except credentials.
package struct Operation: Hashable, Sendable, Identifiable {
    /// Acceptance order, never reused.
    package var sequence: Int64
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
    case editEdit = "edit-edit", editDelete = "edit-delete"
    case discarded, cancelled
    case accepted, alreadyGone = "already_gone"
}
