// One write in the outbox, and its states (docs/outbox.md#schema, docs/outbox.md#states).
import HTTPTypes

/// One accepted write, with everything needed to send it again after a crash, except credentials.
package struct QueuedWrite: Hashable, Sendable, Identifiable {
    /// The position in acceptance order, never reused.
    package var sequence: Int64
    /// The order within its lane: its own sequence, or the place of the operation that it is an edit of.
    package var place: Int64
    /// UUIDv7, public.
    package var id: String
    package var state: OperationState
    package var reason: OperationReason?
    package var request: RequestHead
    package var body: OperationBody
    /// Bytes of a body that a list of operations leaves in the database; 0 if `body` is the whole.
    package var unreadBodyBytes: Int64 = 0
    /// Name of the declared upstream.
    package var upstream: String
    /// The entity's path, e.g. `/v1/notes/17`; nil when unknown.
    package var entity: String?
    /// The path of the collection the entity is in, `/v1/notes`; nil where no resource is declared.
    package var collection: String?
    /// The entity's id as the client wrote it, possibly a local one; nil for a create and where no resource is declared.
    package var entityID: String?
    /// The local id of a create.
    package var localID: LocalID?
    /// The upstream's id of the created entity; nil until the create is delivered.
    package var serverID: String?
    package var lane: String
    package var idempotencyKey: String
    /// True if the client sent the key itself; then it is forwarded verbatim.
    package var keyIsClients: Bool
    /// The name of the principal that sent the write, nil when sent without a credential. Never the credential.
    package var principal: String?
    package var priority: Int
    /// Attempts that the upstream answered; only these count toward the limit.
    package var answeredAttempts: Int
    /// Attempts that never reached the upstream.
    package var networkAttempts: Int
    package var acceptedAt: Timestamp
    package var firstSentAt: Timestamp?
    /// The time of the last attempt whose answer was lost; nil when every attempt was answered, or sent nothing.
    package var lostAt: Timestamp?
    /// The number of probes for its effect.
    package var probes: Int
    /// Sequences of the open operations in other lanes that it waits for.
    package var needs: Set<Int64>
    /// Those of `needs` that matter for the order alone (`DependencyKind.isOfOrder`).
    package var follows: Set<Int64> = []
    /// True if it must not be squashed with another (`Rockpool-No-Merge`).
    package var noMerge: Bool
    /// True if it counts against the share of all unproved principals: no upstream had accepted a credential of its principal
    /// (`OutboxShare`).
    package var isUnproved: Bool
    /// The strong ETag of the representation that the client could have seen.
    package var baseETag: String?
    /// When and from where its client got that representation, where that is known.
    package var baseSeen: BaseSeen?
    /// The program of the principal that wrote it; nil where that is not known.
    package var viewer: Viewer.Program?
    /// Who wrote it.
    package var writer: Viewer { Viewer(partition: principal, program: viewer) }
    /// The earlier operation on whose result it builds.
    package var baseSequence: Int64?
    package var nextAttemptAt: Timestamp
    package var expiresAt: Timestamp?
    /// True if `expiresAt` is the time until which its signature is accepted.
    package var expiresBySignature: Bool {
        let signed = SignedRequest(request)?.expiresAt ?? PresignedURL(target: request.target)?.expiresAt
        return expiresAt != nil && signed == expiresAt
    }
    package var endedAt: Timestamp?
    /// When it was sent first, in the order of ticks; nil before.
    package var begun: Tick?
    /// When it ended, in the order of ticks; nil before.
    package var ended: Tick?
    /// True for a write of a telemetry route (docs/outbox.md#telemetry).
    package var isTelemetry: Bool { Lane.isTelemetry(lane, upstream: upstream) }
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
