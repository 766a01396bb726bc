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

    private var storedFields: Data {
        var fields = request.fields
        for name in Self.credentials { fields[name] = nil }
        return FieldCodec.encode(fields)
    }

    /// Bytes of the row, roughly.
    var rowLength: Int64 {
        let inline: Int64 = if case .inline(let bytes) = body { Int64(bytes.count) } else { 0 }
        return inline + Int64(request.target.utf8.count) + Int64(storedFields.count) + 512
    }

    private var intent: String {
        switch request.method {
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

    func insert(_ db: Database, now: Timestamp) throws {
        var inline: Data?
        var blob: Data?
        switch body {
        case .none: break
        case .inline(let bytes): inline = bytes.data
        case .blob(let sha256, _): blob = Digest.bytes(sha256)?.data
        }
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO op (id, idem_key, key_origin, client_key, fingerprint, principal, upstream, origin, method, target, entity, lane,
                    intent, headers, blob_sha, body_len, content_type, state, reason, first_sent_at, last_error, priority, accepted_at, next_at,
                    expires_at, body)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """)
        let whose: [(any DatabaseValueConvertible)?] = [
            id, idempotencyKey, keyIsClients ? "client" : "proxy", keyIsClients ? idempotencyKey : nil,
            Self.fingerprint(request, body: body).data, principal ?? "", upstream,
        ]
        let what: [(any DatabaseValueConvertible)?] = [
            request.origin.url, request.method.rawValue, request.target, entity, lane, intent, storedFields, blob, body.length,
            request.fields[.contentType], state.rawValue, reason?.rawValue, firstSentAt?.milliseconds, lastError,
        ]
        let when: [(any DatabaseValueConvertible)?] = [
            priority, now.milliseconds, (nextAttemptAt ?? now).milliseconds, expiresAt?.milliseconds, inline,
        ]
        try statement.execute(arguments: StatementArguments(whose + what + when))
    }
}
