// Writes that become one. Two unsent neighbours in a lane are squashed in the transaction that accepts the second (docs/outbox.md#squash).
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
            previous: previous, entity: operation.collection == nil ? nil : operation.entity, isCreate: operation.isCreate,
            action: action ?? (operation.request.method == .post && !operation.isCreate ? "" : nil), method: operation.request.method,
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
                UPDATE op SET method = ?1, intent = ?2, body = sealed(?3), body_len = ?4, headers = sealed_fields(?5), content_type = ?6,
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

    // MARK: - Repeats
    // Equal requests in quick succession that are one write (docs/outbox.md#repeats).

    /// Counts a request as a repeat of an equal write that waits.
    /// - Returns: that write; nil if there is none, or if the request is a write of its own.
    /// - Throws: as `append`.
    package func repeated(_ new: QueuedWriteDraft) async throws -> QueuedWrite? {
        guard new.isRepeatable, !empty.isKnown else { return nil }
        let now = clock()
        guard try await reading({ try Self.original(of: new, in: $0, now: now) }) != nil else { return nil }
        return try await translated {
            try await queue.commit(scope: .either, isRepeatable: true) { try Self.countRepeat(new, in: $0, now: now) }
        }
    }

    /// Makes one of the counted repeats of a write a write of its own, at the end of its lane.
    /// - Parameters:
    ///   - new: a copy of the write with an id and a key of its own.
    ///   - id: of the write.
    /// - Returns: nil if no repeat is counted.
    /// - Throws: as `append`, and `.notFound`.
    package func separate(_ new: QueuedWriteDraft, from id: String) async throws -> QueuedWrite? {
        let now = clock()
        let cost = Cost.row(new.rowLength)
        defer { empty.noteTaken() }
        let made = try await translated {
            try await queue.commit(weight: cost / 2) { db -> QueuedWrite? in
                guard let old = try Self.fetch(in: db, where: "id = ?", [id]) else { throw DataStoreError.notFound(id: id) }
                guard var mark = RepeatMark(of: old.request.fields), mark.count > 0 else { return nil }
                try self.checkRoom(in: db, for: cost)
                try self.attachBlob(of: new.body, in: db)
                mark.count -= 1
                try Self.set(mark, of: old.sequence, old.request.fields, in: db)
                try new.insert(in: db, base: nil, now: now)
                let sequence = db.lastInsertedRowID
                _ = try new.insertEdges(in: db, sequence: sequence)
                for statement in [
                    "UPDATE op SET (group_name, no_merge) = (SELECT group_name, no_merge FROM op WHERE seq = ?2) WHERE seq = ?1",
                    """
                    INSERT INTO op_dep (seq, needs, kind) SELECT ?1, needs, kind FROM op_dep WHERE seq = ?2 AND kind IN ('explicit', 'id')
                        ON CONFLICT DO NOTHING
                    """,
                    "INSERT OR IGNORE INTO op_ref (seq, local_id, place) SELECT ?1, local_id, place FROM op_ref WHERE seq = ?2",
                    "INSERT INTO unproved (seq, principal) SELECT ?1, principal FROM unproved WHERE seq = ?2",
                ] {
                    try db.execute(sql: statement, arguments: [sequence, old.sequence])
                }
                try Self.log(in: db, sequence: sequence, .pending, detail: "a repeat of \(id)", now: now)
                return try Self.fetch(in: db, where: "seq = ?", [sequence])
            }
        }
        if let made {
            if case .blob(let sha256, _) = new.body { releaseBlob(sha256) }
            if let id = made.localID { localIDs.note(id, upstream: made.upstream, collection: made.collection) }
        }
        return made
    }

    /// Counts a request as a repeat, if an equal write waits.
    static func countRepeat(_ new: QueuedWriteDraft, in db: Database, now: Timestamp) throws -> QueuedWrite? {
        guard new.isRepeatable, let sequence = try original(of: new, in: db, now: now),
            let old = try fetch(in: db, where: "seq = ?", [sequence]), var mark = RepeatMark(of: old.request.fields)
        else { return nil }
        mark.count += 1
        try set(mark, of: sequence, old.request.fields, in: db)
        return try fetch(in: db, where: "seq = ?", [sequence])
    }

    private static func set(_ mark: RepeatMark, of sequence: Int64, _ fields: HTTPFields, in db: Database) throws {
        var fields = fields
        fields[.rockpoolRepeat] = mark.text
        try db.cachedStatement(sql: "UPDATE op SET headers = sealed_fields(?) WHERE seq = ?")
            .run([FieldCodec.encode(fields).databaseValue, sequence.databaseValue], in: db)
    }

    /// The newest equal write that a request repeats: of the same client, answered 202 within the last seconds, with the same wishes, not
    /// ended or refused, and with no later write of the client behind it, because the client has gone on since.
    private static func original(of new: QueuedWriteDraft, in db: Database, now: Timestamp) throws -> Int64? {
        let equal = try db.cachedStatement(sql: newestEqual).all(
            [
                new.fingerprint.data.databaseValue, (new.principal ?? "").databaseValue, new.upstream.databaseValue,
                (now - RepeatMark.time).milliseconds.databaseValue,
            ], in: db
        ) { columns in
            Original(
                sequence: try columns.next(), place: try columns.next(), lane: try columns.next(), fields: try columns.fields(),
                group: try columns.nextIfAny(), priority: try columns.next(), noMerge: try columns.next(), expires: try columns.next(),
                needs: try columns.nextIfAny())
        }
        guard let original = equal.first(where: { $0.isSame(as: new) }), RepeatMark(of: original.fields) != nil else { return nil }
        return try isLast(original, of: new, in: db) ? original.sequence : nil
    }

    private struct Original {
        var sequence: Int64
        var place: Int64
        var lane: String
        var fields: HTTPFields
        var group: String?
        var priority: Int
        var noMerge: Bool
        var expires: Bool
        /// The ids of the operations that the client has named, separated by commas.
        var needs: String?

        /// True for the same fields and wishes of the same client.
        func isSame(as new: QueuedWriteDraft) -> Bool {
            group == new.group && priority == new.priority && noMerge == new.noMerge && expires == (new.expiresAt != nil)
                && Set((needs ?? "").split(separator: ",").map(String.init)) == Set(new.dependsOn)
                && RepeatMark.areEqual(fields, new.request.fields)
        }
    }

    /// True if nothing of the same client is behind a write in its lane. Clients without a credential are told apart by address.
    private static func isLast(_ equal: Original, of new: QueuedWriteDraft, in db: Database) throws -> Bool {
        let later = try db.cachedStatement(sql: behind).all(
            [equal.lane, new.upstream, new.principal ?? ""].map(\.databaseValue) + [equal.place.databaseValue], in: db
        ) { try $0.fields() }
        guard new.principal == nil else { return later.isEmpty }
        return later.count < limit && later.allSatisfy { $0[.rockpoolClient] != new.request.fields[.rockpoolClient] }
    }

    private static let newestEqual = """
        SELECT seq, place, lane, unsealed_fields(headers), group_name, priority, no_merge, expires_at IS NOT NULL,
            (SELECT group_concat(needed.id) FROM op_dep JOIN op AS needed ON needed.seq = op_dep.needs
                WHERE op_dep.seq = op.seq AND op_dep.kind = 'explicit')
        FROM op WHERE fingerprint = (SELECT sealed_name(?1)) AND method = 'POST' AND \(OperationState.isOpen) AND state <> 'dead'
            AND principal = ?2 AND upstream = ?3 AND accepted_at > ?4
        ORDER BY seq DESC LIMIT \(limit)
        """

    /// The most writes that are compared: one client rarely has as many in its lane within the time of a repeat.
    private static let limit = 64

    /// The unary `+` keeps SQLite to `op_lane`, where the place is a bound of the search.
    private static let behind = """
        SELECT headers FROM op WHERE lane = ?1 AND +upstream = ?2 AND +principal = ?3 AND place > ?4 AND \(OperationState.isOpen)
        ORDER BY place LIMIT \(limit)
        """

    // MARK: - Messages
    // A message that replaces the earlier ones of its lane (docs/outbox.md#messages).

    /// Deletes what came before an operation in its lane, but not what is in flight.
    /// - Returns: those of the deleted operations that were open.
    /// - Throws: `DataStoreError`; nothing has changed then.
    package func deleteEarlier(than operation: QueuedWrite) async throws -> [QueuedWrite] {
        let earlier = "upstream = ?1 AND lane = ?2 AND seq < ?3 AND state <> 'inflight'"
        let arguments: StatementArguments = [operation.upstream, operation.lane, operation.sequence]
        return try await recorded {
            try await queue.commit { db in
                let rows = try Row.fetchAll(
                    db,
                    sql: "SELECT \(OperationRow.lightColumns) FROM op WHERE \(earlier) AND \(OperationState.isOpen)",
                    arguments: arguments)
                let open = try rows.map(OperationRow.operation(from:))
                try db.execute(sql: "DELETE FROM op WHERE \(earlier)", arguments: arguments)
                return open
            }
        }
    }
}

extension QueuedWriteDraft {
    /// True if it may be the same write as an earlier one: nothing of it was sent, and its client has named no key.
    fileprivate var isRepeatable: Bool { mayRepeat && !keyIsClients && firstSentAt == nil && request.method == .post }
}
