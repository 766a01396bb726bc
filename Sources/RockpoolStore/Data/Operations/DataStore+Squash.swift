// Squashing of two unsent neighbours in a lane, in the transaction that accepts the second (docs/outbox.md#squash).
import FoundationEssentials
import GRDB
import HTTPTypes
package import RockpoolCore

extension DataStore {
    /// Squashes a newly inserted operation with the one before it, where the result equals that of both.
    /// - Returns: the earlier operation in its new state; nil when both stay.
    static func squash(_ sequence: Int64, action: String?, in db: Database, now: Timestamp) throws -> QueuedWrite? {
        // Another program's write is not this one's to replace, unless it has that in front of it.
        guard let later = try fetch(in: db, where: "seq = ?", [sequence]), let earlier = try predecessor(of: later, in: db),
            later.viewer == earlier.viewer || later.baseSequence == earlier.sequence
        else { return nil }
        let decision = Squash.decide(
            earlier: try candidate(earlier, action: nil, beside: later.sequence, in: db),
            later: try candidate(later, action: action, previous: earlier.sequence, beside: earlier.sequence, in: db))
        switch decision {
        case .keepBoth: return nil
        case .replace(let body, let method): try replace(earlier, by: later, body: body, method: method, in: db, now: now)
        case .foldIntoCreate(let body):
            try db.execute(
                sql: "UPDATE op SET body = sealed(?), body_len = ? WHERE seq = ?", arguments: [body.data, body.count, earlier.sequence])
            FailPoint.squashing.reached()
            try end(later, .superseded, by: earlier, in: db, now: now)
        case .cancelBoth:
            for operation in [earlier, later] { try end(operation, .cancelled, by: nil, in: db, now: now) }
        }
        return try fetch(in: db, where: "seq = ?", [earlier.sequence])
    }

    /// Returns the last write that was squashed into each of these creates, by the create's sequence; nothing for others.
    package func lastSquashed(into creates: [QueuedWrite]) async throws -> [Int64: Int64] {
        guard !creates.isEmpty else { return [:] }
        return try await reading { db in
            let statement = try db.cachedStatement(
                sql: "SELECT max(seq) FROM op WHERE upstream = ? AND entity = ? AND seq > ? AND superseded_by = ?")
            return try creates.reduce(into: [:]) { last, create in
                let values: [any DatabaseValueConvertible] = [create.upstream, create.entity ?? "", create.sequence, create.sequence]
                last[create.sequence] = try Int64.fetchOne(statement, arguments: StatementArguments(values))
            }
        }
    }

    private static func predecessor(of operation: QueuedWrite, in db: Database) throws -> QueuedWrite? {
        try fetch(
            in: db,
            where: "upstream = ? AND lane = ? AND place < ? AND \(OperationState.isOpen) ORDER BY place DESC LIMIT 1",
            [operation.upstream, operation.lane, operation.place])
    }

    /// - Parameter other: the other operation of the pair, which does not count as a dependant.
    private static func candidate(
        _ operation: QueuedWrite, action: String?, previous: Int64? = nil, beside other: Int64, in db: Database
    ) throws -> SquashCandidate {
        let attempts = try Int.fetchOne(db, sql: "SELECT count(*) FROM attempt WHERE seq = ?", arguments: [operation.sequence]) ?? 0
        let isNeeded =
            try Bool.fetchOne(
                db,
                sql: """
                    SELECT EXISTS (SELECT 1 FROM op_dep JOIN op USING (seq) WHERE needs = ? AND seq <> ?
                        AND \(OperationState.isOpen))
                    """,
                arguments: [operation.sequence, other])
            ?? true
        let group = try String.fetchOne(db, sql: "SELECT group_name FROM op WHERE seq = ?", arguments: [operation.sequence])
        var body: [UInt8] = []
        var isInline = true
        switch operation.body {
        case .none: break
        case .inline(let bytes): body = bytes
        case .blob: isInline = false
        }
        var fields = operation.request.fields
        for name in [HTTPField.Name.contentType, .rockpoolRepeat] { fields[name] = nil }
        return SquashCandidate(
            sequence: operation.sequence, isUnsent: operation.state == .pending && attempts == 0, lane: operation.upstream + operation.lane,
            previous: previous, entity: operation.collection == nil ? nil : operation.entity, isCreate: operation.localID != nil,
            action: action ?? (operation.request.method == .post && operation.localID == nil ? "" : nil), method: operation.request.method,
            target: operation.request.target, fields: fields, contentType: operation.request.fields[.contentType], body: body,
            principal: operation.principal, priority: operation.priority, expiresAt: operation.expiresAt, group: group,
            needs: operation.needs, hasDependants: isNeeded, permitsMerging: isInline && !operation.noMerge)
    }

    private static func replace(
        _ earlier: QueuedWrite, by later: QueuedWrite, body: [UInt8], method: HTTPRequest.Method, in db: Database, now: Timestamp
    ) throws {
        var fields = later.request.fields
        if method != later.request.method { fields[.contentType] = earlier.request.fields[.contentType] }
        // The client of the later operation could have seen the same representation as that of the earlier one, so it takes over the base.
        try db.execute(
            sql: """
                UPDATE op SET method = ?1, intent = ?2, body = sealed(?3), body_len = ?4, headers = ?5, content_type = ?6,
                    (base_sha, base_etag, base_seq) = (SELECT base_sha, base_etag, base_seq FROM op WHERE seq = ?7) WHERE seq = ?8
                """,
            arguments: [
                method.rawValue, QueuedWriteDraft.intent(of: method), method == .delete && body.isEmpty ? nil : body.data, body.count,
                FieldCodec.encode(fields), fields[.contentType], earlier.sequence, later.sequence,
            ])
        try db.execute(sql: "DELETE FROM op_dep WHERE seq = ? AND needs = ?", arguments: [later.sequence, earlier.sequence])
        FailPoint.squashing.reached()
        try end(earlier, .superseded, by: later, in: db, now: now)
    }

    private static func end(
        _ operation: QueuedWrite, _ state: OperationState, by later: QueuedWrite?, in db: Database, now: Timestamp
    ) throws {
        try transition(
            in: db, sequence: operation.sequence, from: operation.state, to: state, reason: .squashed, update: .replaced,
            values: [(later?.sequence).databaseValue],
            now: now)
    }
}
