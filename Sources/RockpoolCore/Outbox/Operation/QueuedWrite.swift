// One write in the outbox: its state, its body, its result, and its relations to others (docs/outbox.md#schema, docs/outbox.md#states).
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
    /// Bytes of its body, wherever it is.
    package var bodyLength: Int64 { body.length + unreadBodyBytes }
    /// Name of the declared upstream.
    package var upstream: String
    /// The entity's path, e.g. `/v1/notes/17`; nil when unknown.
    package var entity: String?
    /// The path of the collection the entity is in, `/v1/notes`; nil where no resource is declared.
    package var collection: String?
    /// The entity's id as the client wrote it, possibly a local one; nil where no resource is declared.
    package var entityID: String?
    /// The id of a create's item; nil for any other write.
    package var newItem: NewItemID?
    /// True if it creates an item of a declared resource.
    package var isCreate: Bool { newItem != nil }
    /// The local id of a create; nil where its client has chosen the key.
    package var localID: LocalID? {
        get { newItem?.local }
        set { newItem = newValue.map { .local($0) } }
    }
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

// MARK: - Body and result

/// The body of an operation: in its row, or a file of `blobs/` named by its SHA-256.
package enum OperationBody: Hashable, Sendable {
    case none
    case inline([UInt8])
    case blob(sha256: String, length: Int64)

    /// The body that lies in the row; empty without one.
    package var inlineBytes: [UInt8] { if case .inline(let bytes) = self { bytes } else { [] } }

    /// Bytes of the body.
    package var length: Int64 {
        switch self {
        case .none: 0
        case .inline(let bytes): Int64(bytes.count)
        case .blob(_, let length): length
        }
    }
}

/// The upstream's final answer.
package struct OperationResult: Hashable, Sendable {
    package var head: ResponseHead
    /// The first part of the body, at most 1 MiB.
    package var body: [UInt8]

    package init(head: ResponseHead, body: [UInt8]) {
        self.head = head
        self.body = body
    }
}

// MARK: - State

/// The state of an operation. The raw values are a CHECK of the `op` table.
package enum OperationState: String, CaseIterable, Sendable, Codable {
    case pending, inflight, uncertain, delivered, conflicted, parked, dead, cancelled, superseded

    /// True if nothing can change the operation any more, so that the lane may continue.
    package var hasEnded: Bool {
        switch self {
        case .delivered, .cancelled, .superseded: true
        case .pending, .inflight, .uncertain, .conflicted, .parked, .dead: false
        }
    }
}

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

// MARK: - Relations

/// The relations of an operation that its own row does not contain.
package struct OperationRelations: Hashable, Sendable {
    /// The operations it needs, ended or not, as far as their rows still exist.
    package var dependsOn: [OperationLink]
    /// The first open operation before it in its lane.
    package var ahead: OperationLink?
    /// The id of the operation that replaced it.
    package var supersededBy: String?
    /// The id of the operation that it replaced.
    package var fixes: String?
    /// True if an open operation waits behind it in its lane, or needs it: then it is not purged.
    package var isAwaited: Bool

    package init(
        dependsOn: [OperationLink] = [], ahead: OperationLink? = nil, supersededBy: String? = nil, fixes: String? = nil,
        isAwaited: Bool = false
    ) {
        self.dependsOn = dependsOn
        self.ahead = ahead
        self.supersededBy = supersededBy
        self.fixes = fixes
        self.isAwaited = isAwaited
    }

    /// The operation that blocks it: the head of its lane, or the first dependency that has not been delivered.
    package var blocker: OperationLink? { ahead ?? dependsOn.first { $0.state != .delivered } }
}

/// The properties of another operation that are shown to a person (docs/outbox.md#dependencies).
package struct OperationLink: Hashable, Sendable {
    /// The public id.
    package var id: String
    package var state: OperationState
    package var reason: OperationReason?
    /// The method and the URL of its request.
    package var method: String
    package var url: String

    package init(id: String, state: OperationState, reason: OperationReason? = nil, method: String, url: String) {
        self.id = id
        self.state = state
        self.reason = reason
        self.method = method
        self.url = url
    }

    /// True if a credential of its client releases it.
    package var waitsForCredential: Bool { state == .parked && reason == .auth }

    /// The link as it is listed in documents and problems.
    package var json: JSONValue {
        [
            "id": .string(id), "state": .string(state.rawValue), "reason": .optional(reason?.rawValue), "method": .string(method),
            "url": .string(url),
        ]
    }
}

// MARK: - State of the entity

/// The state of an entity that differs from that of its upstream; nil stands for one that does not (docs/reference/admin-api.md#sync).
package enum EntityState: String, CaseIterable, Sendable {
    case pendingCreate = "pending-create"
    case pendingUpdate = "pending-update"
    case pendingDelete = "pending-delete"
    /// Its copy is known to be out of date, and is fetched with the next read.
    case pendingPull = "pending-pull"

    /// The state by the open writes to one entity: its deletion ends whatever came before, its creation holds what comes after.
    package static func of(_ writes: [QueuedWrite]) -> EntityState? {
        writes.sorted { $0.sequence < $1.sequence }.reduce(nil) { $1.isCreate ? .pendingCreate : $1.request.method.state(after: $0) }
    }
}

extension HTTPRequest.Method {
    /// The state of an entity with a write of this method that does not create it.
    func state(after earlier: EntityState?) -> EntityState {
        if self == .delete { return .pendingDelete }
        return earlier == .pendingCreate ? .pendingCreate : .pendingUpdate
    }
}
