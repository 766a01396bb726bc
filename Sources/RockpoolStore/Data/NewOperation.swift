// A write as it is handed to the outbox, and as a row (outbox.md §1.2).
import Crypto
import FoundationEssentials
import GRDB
import HTTPTypes
package import RockpoolCore

/// A write to be taken. Its sequence is given by the store.
package struct NewOperation: Sendable {
    /// UUIDv7, public.
    package var id: String
    package var request: RequestHead
    package var body: OperationBody
    package var upstream: String
    package var entity: String?
    package var lane: String
    package var idempotencyKey: String
    /// Whether the client sent the key itself: then it also answers at the door.
    package var keyIsClients: Bool
    /// The identity's name, never the credential.
    package var principal: String?
    /// −100…100, lower goes first.
    package var priority: Int
    /// nil: at once.
    package var nextAttemptAt: Timestamp?
    package var expiresAt: Timestamp?
    /// `pending`, or `uncertain` for a write whose live answer was lost.
    package var state = OperationState.pending
    package var reason: OperationReason?
    /// When a live attempt may have sent it, before it came here.
    package var firstSentAt: Timestamp?
    package var lastError: String?
    /// The path of the entity's collection, and its id there; nil where no resource is declared.
    package var collection: String?
    package var entityID: String?
    /// The id a create is known by until the upstream gives it one.
    package var localID: LocalID?
    /// Where the request holds local ids that are not mapped yet.
    package var references: [LocalIDReference] = []
    /// Public ids of operations it waits for (`Rockpool-Depends-On`).
    package var dependsOn: [String] = []
    /// Operations of one group go in the order they were accepted (`Rockpool-Group`).
    package var group: String?
    /// Never joined with another (`Rockpool-No-Merge`).
    package var noMerge = false
    /// Whether it may be joined with the one before it (`queue.squash`).
    package var maySquash = false
    /// `publish` of `POST /notes/17/publish`: never joined with anything.
    package var action: String?
    /// The copy its client could have seen: kept until the operation is purged. At most 1 MiB; nil where there was none, or a larger one.
    package var base: Conflict.Side?
    /// That copy's strong ETag, and when it was fetched.
    package var baseETag: String?
    package var baseFetchedAt: Timestamp?
    /// Operations whose result its condition names by local ETags.
    package var conditionedOn: [Int64] = []
    /// Whether its condition is ours to add: it changes an item of a resource whose version is its ETag, and the client named none.
    package var takesBase = false
    /// Whose part of the outbox it takes, and is refused with when that is used up; nil for what a person does, which none limits.
    package var share: OutboxShare?
    /// Of the request as its client sent it; what is stored may have local ids replaced.
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

    /// SHA-256 over method, URL, type and body, each with its length before it. Finds a key used again with another payload; never
    /// takes two equal writes for one (outbox.md §1.7).
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

    /// Never written to disk, whatever the caller left in (contract §6).
    private static let credentials: [HTTPField.Name] = [.authorization, .proxyAuthorization, .cookie]

    private var storedFields: Data { FieldCodec.encode(Self.bare(request.fields)) }

    static func bare(_ fields: HTTPFields) -> HTTPFields {
        var fields = fields
        for name in credentials { fields[name] = nil }
        return fields
    }

    /// As its row now says, without asking it again.
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

    /// Bytes of the row, roughly.
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

    /// The live attempt whose answer was lost, as attempt 0: the key's clock runs since then, whatever later attempts show.
    func insertLiveAttempt(_ db: Database, _ sequence: Int64) throws {
        guard let firstSentAt else { return }
        try db.execute(
            sql: "INSERT INTO attempt (seq, n, started, ended, error, evidence) VALUES (?1, 0, ?2, ?2, ?3, 'maybe')",
            arguments: [sequence, firstSentAt.milliseconds, lastError])
    }

    /// Says that it counts among the unproved ones, if it does. After `insert`.
    func insertShare(_ db: Database, _ sequence: Int64) throws {
        guard share == .unproved else { return }
        try db.cachedStatement(sql: "INSERT INTO unproved (seq, principal) VALUES (?, ?)").execute(arguments: [sequence, principal ?? ""])
    }

    /// - Parameter base: the operation on whose result it builds.
    func insert(_ db: Database, base: Int64?, now: Timestamp) throws {
        let columns = columns(base: base, pinned: try self.base?.pin(db), now: now)
        let values = columns.map { ["body": "sealed(?)", "fingerprint": "sealed_name(?)"][$0.name] ?? "?" }
        // The place is the sequence that the row is about to get.
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
    /// As `body` and `blob_sha` hold it: one of them, or none.
    var columns: (inline: Data?, blob: Data?) {
        switch self {
        case .none: (nil, nil)
        case .inline(let bytes): (bytes.data, nil)
        case .blob(let sha256, _): (nil, Digest.bytes(sha256)?.data)
        }
    }
}
