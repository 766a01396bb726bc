// A person's commands on the outbox: each of them one transaction, whatever it takes with it (outbox.md §1.3 *user*).
import GRDB
package import RockpoolCore

extension DataStore {
    /// Ends an operation that was not delivered, and what needs it when the whole tree is to go.
    /// - Parameters:
    ///   - from: the states that each of them may be in.
    ///   - withTree: false refuses when something needs it.
    /// - Returns: all that have ended, the named one first.
    /// - Throws: `.needed` with those that need it, `.illegal` when one of them is in another state, `.notFound`, `.unavailable`. Nothing
    ///   has changed then.
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

    /// Makes what waits, is parked, was refused or is in conflict in a lane due now. What may have taken effect is left alone: that
    /// is decided about one by one.
    /// - Parameter upstream: nil: the lane of that name at every upstream.
    /// - Returns: the ids tried again, and those left alone, in their order within the lane.
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

    /// Puts an edited operation in the place of another: in its lane, before what waits there, with what it needs and what needs it.
    ///
    /// The old one ends as `superseded`, reason `edited`, and keeps its client's key for the door. `new` gives request, body, entity
    /// and idempotency key; place, lane, priority, principal, expiry and base are the old one's.
    /// - Parameter from: the states the old one may be in.
    /// - Returns: the new one.
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
        // Where a local id is written may have changed with the body: what is gone is not looked for.
        try db.execute(
            sql: """
                INSERT INTO op_ref (seq, local_id, place) SELECT ?1, op_ref.local_id, op_ref.place FROM op_ref JOIN op ON op.seq = ?1
                    WHERE op_ref.seq = ?2 AND (instr(op.target, op_ref.local_id) > 0 OR instr(op.headers, CAST(op_ref.local_id AS BLOB)) > 0
                        OR op.blob_sha IS NOT NULL OR instr(op.body, CAST(op_ref.local_id AS BLOB)) > 0) ON CONFLICT DO NOTHING
                """, arguments: [sequence, old])
    }

    /// One row to another state; a dead one that is tried again starts counting anew.
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
