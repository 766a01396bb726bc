// The row of a new operation, and what is inserted with it (docs/outbox.md#schema).
import FoundationEssentials
import GRDB
import HTTPTypes
import RockpoolCore

extension QueuedWriteDraft {
    /// Fields that are never written to disk, even if the caller left them in the request (docs/reference/behaviour.md#credentials).
    private static let credentials: [HTTPField.Name] = [.authorization, .proxyAuthorization, .cookie]

    var storedFields: Data { FieldCodec.encode(Self.bare(request.fields)) }

    static func bare(_ fields: HTTPFields) -> HTTPFields {
        var fields = fields
        for name in credentials { fields[name] = nil }
        return fields
    }

    /// Returns the operation equal to its inserted row, without reading the row.
    func operation(_ sequence: Int64, base: Int64?, needs: Set<Int64>, now: Timestamp) -> QueuedWrite {
        var bare = request
        bare.fields = Self.bare(request.fields)
        var operation = QueuedWrite(
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
    func insertLiveAttempt(in db: Database, sequence: Int64) throws {
        guard let firstSentAt else { return }
        try db.execute(
            sql: "INSERT INTO attempt (seq, n, started, ended, error, evidence) VALUES (?1, 0, ?2, ?2, ?3, 'maybe')",
            arguments: [sequence, firstSentAt.milliseconds, lastError])
    }

    /// Marks the operation as unproved if it counts on that share. Call it after `insert`.
    func insertShare(in db: Database, sequence: Int64) throws {
        guard share == .unproved else { return }
        try db.cachedStatement(sql: "INSERT INTO unproved (seq, principal) VALUES (?, ?)").execute(arguments: [sequence, principal ?? ""])
    }

    /// - Parameter base: the operation it builds on.
    func insert(in db: Database, base: Int64?, now: Timestamp) throws {
        let row = NewOperationRow(new: self, base: base, pinned: try self.base?.pin(in: db), now: now)
        let values: [(any DatabaseValueConvertible)?] = OperationColumn.bound.map { $0.bind?(row) }
        try db.cachedStatement(sql: OperationColumn.insert).execute(arguments: StatementArguments(values))
    }
}

extension OperationBody {
    /// The value of `body`.
    var inlineData: Data? { if case .inline(let bytes) = self { bytes.data } else { nil } }
    /// The value of `blob_sha`.
    var blobHash: Data? { if case .blob(let sha256, _) = self { Digest.bytes(sha256)?.data } else { nil } }
}
