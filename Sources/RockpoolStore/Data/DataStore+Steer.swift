// Commands of a person on the outbox, each a single transaction with all its consequences (docs/outbox.md#steering *user*).
import GRDB
package import RockpoolCore

extension DataStore {
    /// Ends an operation that was not delivered, and with `withTree` its dependants too.
    /// - Parameters:
    ///   - from: the states in which the operation may be.
    ///   - withTree: false refuses when another operation needs it.
    /// - Returns: all ended operations, the named one first.
    /// - Throws: `.needed` with its dependants, `.illegal` when one of them is in another state, `.notFound`, `.unavailable`. Nothing has
    ///   changed then.
    package func giveUp(
        id: String, reason: OperationReason, from: Set<OperationState>, withTree: Bool, now: Timestamp
    ) async throws -> [Operation] {
        try await recorded {
            try await queue.commit { db in
                guard let operation = try Self.fetch(db, where: "id = ?", [id]) else { throw DataStoreError.notFound(id: id) }
                let dependants = try Self.dependants(of: operation.sequence, db)
                guard withTree || dependants.isEmpty else { throw DataStoreError.needed(by: try Self.links(dependants, db)) }
                let first = try Self.move(operation.sequence, to: .cancelled, reason, from: from, db, now)
                return try [first]
                    + dependants.map { try Self.move($0, to: .cancelled, .discarded, from: OperationSteering.discard.allowedFrom, db, now) }
            }
        }
    }

    /// Makes the pending, parked, dead and conflicted operations of a lane due now. An uncertain one may have taken effect and needs a
    /// decision of its own, so it is left alone.
    /// - Parameter upstream: nil selects the lane of that name at every upstream.
    /// - Returns: the ids of the retried and of the uncertain operations, in their order within the lane.
    package func retry(lane: String, upstream: String? = nil, now: Timestamp) async throws -> (retried: [String], uncertain: [String]) {
        try await recorded {
            try await queue.commit { db in
                let rows = try Row.fetchAll(
                    db,
                    sql: """
                        SELECT seq, id, state FROM op WHERE lane = ?1 AND (?2 IS NULL OR upstream = ?2)
                            AND state NOT IN (\(OperationRow.endedStates)) ORDER BY place, seq
                        """, arguments: [lane, upstream])
                var (retried, uncertain): ([String], [String]) = ([], [])
                for row in rows {
                    var columns = RowReader(row)
                    let (sequence, id): (Int64, String) = (try columns.next(), try columns.next())
                    switch try columns.word(OperationState.self) {
                    case .pending, .parked, .dead, .conflicted:
                        _ = try Self.move(sequence, to: .pending, nil, from: OperationSteering.retry.allowedFrom, db, now)
                        retried.append(id)
                    case .uncertain: uncertain.append(id)
                    default: break
                    }
                }
                return (retried, uncertain)
            }
        }
    }

    /// Puts an edited operation in the place of another: in its lane, before the later ones, with its dependencies and dependants.
    ///
    /// The old operation ends as `superseded`, reason `edited`, and keeps its client key, so that a repeated request is still recognised.
    /// `new` supplies request, body, entity and idempotency key; place, lane, priority, principal, expiry and base are those of the old
    /// one.
    /// - Parameter from: the states in which the old operation may be.
    /// - Returns: the new operation.
    /// - Throws: `.illegal`, `.notFound`, `.full`, `.unavailable`; nothing has changed then.
    package func replace(id: String, by new: NewOperation, from: Set<OperationState>, now: Timestamp) async throws -> Operation {
        let cost = Cost.row(new.rowLength)
        let edited = try await translated {
            try await queue.commit(weight: cost / 2) { db in
                guard let old = try Self.fetch(db, where: "id = ?", [id]) else { throw DataStoreError.notFound(id: id) }
                try self.checkRoom(db, for: cost)
                try self.attachBlob(of: new.body, db)
                try new.insert(db, base: nil, now: now)
                let sequence = db.lastInsertedRowID
                _ = try Self.move(old.sequence, to: .superseded, .edited, from: from, db, now)
                try Self.inherit(sequence, from: old.sequence, db)
                try Self.log(db, sequence, .pending, detail: "edited: \(old.id)", now: now)
                return try Self.fetch(db, where: "seq = ?", [sequence])
            }
        }
        if case .blob(let sha256, _) = new.body { releaseBlob(sha256) }
        return try edited ?? { throw DataStoreError.notFound(id: new.id) }()
    }

    private static func inherit(_ sequence: Int64, from old: Int64, _ db: Database) throws {
        let columns = """
            place, lane, principal, priority, expires_at, group_name, entity_type, entity_id, local_id, base_sha, base_etag, base_version,
            base_seq, no_merge
            """
        for statement in [
            "UPDATE op SET (\(columns), key_rev, fixes) = (SELECT \(columns), key_rev + 1, seq FROM op WHERE seq = ?2) WHERE seq = ?1",
            "UPDATE op SET superseded_by = ?1 WHERE seq = ?2",
            "UPDATE op SET base_seq = ?1 WHERE base_seq = ?2 AND seq <> ?1",
            "INSERT INTO op_dep (seq, needs, kind) SELECT ?1, needs, kind FROM op_dep WHERE seq = ?2 ON CONFLICT DO NOTHING",
            "INSERT INTO op_dep (seq, needs, kind) SELECT seq, ?1, kind FROM op_dep WHERE needs = ?2 ON CONFLICT DO NOTHING",
            "UPDATE id_map SET created_by = ?1 WHERE created_by = ?2",
            "INSERT INTO unproved (seq, principal) SELECT ?1, principal FROM unproved WHERE seq = ?2",
        ] {
            try db.execute(sql: statement, arguments: [sequence, old])
        }
        try db.execute(sql: "DELETE FROM op_dep WHERE needs = ?", arguments: [old])
        // The new body may no longer contain a local id: only references that are still there are copied.
        try db.execute(
            sql: """
                INSERT INTO op_ref (seq, local_id, place) SELECT ?1, op_ref.local_id, op_ref.place FROM op_ref JOIN op ON op.seq = ?1
                    WHERE op_ref.seq = ?2 AND (instr(op.target, op_ref.local_id) > 0 OR instr(op.headers, CAST(op_ref.local_id AS BLOB)) > 0
                        OR op.blob_sha IS NOT NULL OR instr(op.body, CAST(op_ref.local_id AS BLOB)) > 0) ON CONFLICT DO NOTHING
                """, arguments: [sequence, old])
    }

    /// Moves one row to another state; a retried dead operation has its answered attempts reset to 0.
    private static func move(
        _ sequence: Int64, to state: OperationState, _ reason: OperationReason?, from: Set<OperationState>, _ db: Database, _ now: Timestamp
    ) throws -> Operation {
        guard let before = try fetch(db, where: "seq = ?", [sequence]) else { throw DataStoreError.notFound(id: "\(sequence)") }
        guard from.contains(before.state), before.state == state || OperationMachine.permits(from: before.state, to: state) else {
            throw DataStoreError.illegal(from: before.state, to: state)
        }
        try db.execute(
            sql: """
                UPDATE op SET reason = ?2, next_at = CASE WHEN ?1 = 'pending' THEN ?3 ELSE next_at END, ended_at = ?4,
                    answered_attempts = CASE WHEN state = 'dead' AND ?1 = 'pending' THEN 0 ELSE answered_attempts END, state = ?1
                WHERE seq = ?5
                """,
            arguments: [
                state.rawValue, reason?.rawValue, now.milliseconds, state.hasEnded ? now.milliseconds : nil, sequence,
            ])
        if before.state == .conflicted { try closeConflict(of: sequence, by: reason, db, now: now) }
        try log(db, sequence, state, detail: reason?.rawValue, now: now)
        return try fetch(db, where: "seq = ?", [sequence]) ?? before
    }
}
