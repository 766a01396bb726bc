// A write as passed to the outbox, and its row (docs/outbox.md#schema).
import Crypto
import FoundationEssentials
import GRDB
import HTTPTypes
package import RockpoolCore

/// A write to be accepted. The store assigns its sequence.
package struct NewOperation: Sendable {
    /// UUIDv7, public.
    package var id: String
    package var request: RequestHead
    package var body: OperationBody
    package var upstream: String
    package var entity: String?
    package var lane: String
    package var idempotencyKey: String
    /// True if the client sent the key itself: a repeated request with this key is then recognised by the listener.
    package var keyIsClients: Bool
    /// The identity's name, never the credential.
    package var principal: String?
    /// −100…100, lower goes first.
    package var priority: Int
    /// nil: at once.
    package var nextAttemptAt: Timestamp?
    package var expiresAt: Timestamp?
    /// `pending`, or `uncertain` for a forwarded write that lost its response.
    package var state = OperationState.pending
    package var reason: OperationReason?
    /// When a live attempt may have sent the write before it was queued.
    package var firstSentAt: Timestamp?
    package var lastError: String?
    /// The path of the entity's collection, and its id there; nil where no resource is declared.
    package var collection: String?
    package var entityID: String?
    /// The id of a created entity until the upstream assigns one.
    package var localID: LocalID?
    /// The places of unmapped local ids in the request.
    package var references: [LocalIDReference] = []
    /// Public ids of operations it waits for (`Rockpool-Depends-On`).
    package var dependsOn: [String] = []
    /// Operations of one group are sent in the order they were accepted (`Rockpool-Group`).
    package var group: String?
    /// True if it must never be squashed (`Rockpool-No-Merge`).
    package var noMerge = false
    /// True if it may be squashed with the one before it (`queue.squash`).
    package var maySquash = false
    /// `publish` of `POST /notes/17/publish`: an action is never squashed.
    package var action: String?
    /// The representation its client could have seen, kept until the operation is purged. At most 1 MiB; nil when there was none, or a
    /// larger one.
    package var base: Conflict.Side?
    /// The strong ETag of that representation, and when it was fetched.
    package var baseETag: String?
    package var baseFetchedAt: Timestamp?
    /// Operations that its condition refers to by local ETags.
    package var conditionedOn: [Int64] = []
    /// True if the proxy adds the condition: the request changes an item of a resource versioned by ETags, and has no condition of its own.
    package var takesBase = false
    /// The share of the outbox it counts on; a write is refused when its share is used up. Nil for a person's command, which has no limit.
    package var share: OutboxShare?
    /// Fingerprint of the request as received; the stored request may have local ids replaced.
    package var fingerprint: [UInt8] = []

    package init(
        id: String, request: RequestHead, body: OperationBody = .none, upstream: String, entity: String? = nil, lane: String,
        idempotencyKey: String, keyIsClients: Bool = false, principal: String? = nil, priority: Int = 0,
        nextAttemptAt: Timestamp? = nil, expiresAt: Timestamp? = nil
    ) {
        self.id = id
        self.request = request
        self.body = body
        self.upstream = upstream
        self.entity = entity
        self.lane = lane
        self.idempotencyKey = idempotencyKey
        self.keyIsClients = keyIsClients
        self.principal = principal
        self.priority = priority
        self.nextAttemptAt = nextAttemptAt
        self.expiresAt = expiresAt
        fingerprint = Self.fingerprint(request, body: body)
    }

    /// Returns the SHA-256 of method, URL, type and body, each preceded by its length. Used to detect a key reused with another payload,
    /// never to treat two equal writes as one (docs/outbox.md#keys).
    package static func fingerprint(_ request: RequestHead, body: OperationBody) -> [UInt8] {
        let bodyHash: [UInt8] =
            switch body {
            case .none: Array(SHA256.hash(data: [UInt8]()))
            case .inline(let bytes): Array(SHA256.hash(data: bytes))
            case .blob(let sha256, _): Digest.bytes(sha256) ?? []
            }
        var hash = SHA256()
        for part in [request.method.rawValue, request.url, request.fields[.contentType] ?? ""].map({ Array($0.utf8) }) + [bodyHash] {
            hash.update(data: Array("\(part.count):".utf8))
            hash.update(data: part)
        }
        return Array(hash.finalize())
    }

    /// Fields that are never written to disk, even if the caller left them in the request (docs/reference/behaviour.md#credentials).
    private static let credentials: [HTTPField.Name] = [.authorization, .proxyAuthorization, .cookie]

    private var storedFields: Data { FieldCodec.encode(Self.bare(request.fields)) }

    static func bare(_ fields: HTTPFields) -> HTTPFields {
        var fields = fields
        for name in credentials { fields[name] = nil }
        return fields
    }

    /// Returns the operation equal to its inserted row, without reading the row.
    func operation(_ sequence: Int64, base: Int64?, needs: Set<Int64>, now: Timestamp) -> Operation {
        var bare = request
        bare.fields = Self.bare(request.fields)
        var operation = Operation(
            sequence: sequence, id: id, state: state, reason: reason, request: bare, body: body, upstream: upstream, entity: entity,
            lane: lane, idempotencyKey: idempotencyKey, keyIsClients: keyIsClients, principal: principal, priority: priority,
            acceptedAt: now, firstSentAt: firstSentAt, nextAttemptAt: nextAttemptAt ?? now, expiresAt: expiresAt, lastError: lastError)
        operation.collection = collection
        operation.entityID = entityID
        operation.localID = localID
        operation.noMerge = noMerge
        operation.isUnproved = share == .unproved
        operation.baseETag = baseETag
        operation.baseSequence = base
        operation.needs = needs
        operation.lostAt = firstSentAt
        return operation
    }

    /// Approximate bytes of the row.
    var rowLength: Int64 {
        let inline: Int64 = if case .inline(let bytes) = body { Int64(bytes.count) } else { 0 }
        return inline + Int64(base?.body.count ?? 0) + Int64(request.target.utf8.count) + Int64(storedFields.count) + 512
    }

    private var intent: String { Self.intent(of: request.method) }

    static func intent(of method: HTTPRequest.Method) -> String {
        switch method {
        case .post: "create"
        case .put: "replace"
        case .patch: "patch"
        case .delete: "delete"
        default: "action"
        }
    }

    /// Inserts the live attempt that lost its response, as attempt 0: the lifetime of the key starts with it, whatever later attempts show.
    func insertLiveAttempt(_ db: Database, _ sequence: Int64) throws {
        guard let firstSentAt else { return }
        try db.execute(
            sql: "INSERT INTO attempt (seq, n, started, ended, error, evidence) VALUES (?1, 0, ?2, ?2, ?3, 'maybe')",
            arguments: [sequence, firstSentAt.milliseconds, lastError])
    }

    /// Marks the operation as unproved if it counts on that share. Call it after `insert`.
    func insertShare(_ db: Database, _ sequence: Int64) throws {
        guard share == .unproved else { return }
        try db.cachedStatement(sql: "INSERT INTO unproved (seq, principal) VALUES (?, ?)").execute(arguments: [sequence, principal ?? ""])
    }

    /// - Parameter base: the operation it builds on.
    func insert(_ db: Database, base: Int64?, now: Timestamp) throws {
        let columns = columns(base: base, pinned: try self.base?.pin(db), now: now)
        let values = columns.map { ["body": "sealed(?)", "fingerprint": "sealed_name(?)"][$0.name] ?? "?" }
        // The place equals the sequence that the row will get.
        let sql = """
            INSERT INTO op (place, \(columns.map(\.name).joined(separator: ", ")))
            VALUES (coalesce((SELECT seq + 1 FROM sqlite_sequence WHERE name = 'op'), 1), \(values.joined(separator: ", ")))
            """
        try db.cachedStatement(sql: sql).execute(arguments: StatementArguments(columns.map(\.value)))
    }

    private func columns(base: Int64?, pinned: Data?, now: Timestamp) -> [(name: String, value: (any DatabaseValueConvertible)?)] {
        let (inline, blob) = body.columns
        let whose: [(String, (any DatabaseValueConvertible)?)] = [
            ("id", id), ("idem_key", idempotencyKey), ("key_origin", keyIsClients ? "client" : "proxy"),
            ("client_key", keyIsClients ? idempotencyKey : nil), ("fingerprint", fingerprint.data), ("principal", principal ?? ""),
            ("upstream", upstream),
        ]
        let what: [(String, (any DatabaseValueConvertible)?)] = [
            ("origin", request.origin.url), ("method", request.method.rawValue), ("target", request.target), ("intent", intent),
            ("headers", storedFields), ("blob_sha", blob), ("body_len", body.length), ("content_type", request.fields[.contentType]),
            ("body", inline),
        ]
        let place: [(String, (any DatabaseValueConvertible)?)] = [
            ("entity", entity), ("entity_type", collection), ("entity_id", entityID), ("local_id", localID?.text), ("lane", lane),
            ("group_name", group), ("no_merge", noMerge), ("base_sha", pinned), ("base_etag", baseETag),
            ("base_seq", base),
        ]
        let state: [(String, (any DatabaseValueConvertible)?)] = [
            ("state", self.state.rawValue), ("reason", reason?.rawValue), ("first_sent_at", firstSentAt?.milliseconds),
            ("last_error", lastError), ("priority", priority), ("accepted_at", now.milliseconds),
            ("next_at", (nextAttemptAt ?? now).milliseconds), ("expires_at", expiresAt?.milliseconds),
        ]
        return whose + what + place + state
    }
}

extension OperationBody {
    /// The values of `body` and `blob_sha`: at most one of them.
    var columns: (inline: Data?, blob: Data?) {
        switch self {
        case .none: (nil, nil)
        case .inline(let bytes): (bytes.data, nil)
        case .blob(let sha256, _): (nil, Digest.bytes(sha256)?.data)
        }
    }
}
