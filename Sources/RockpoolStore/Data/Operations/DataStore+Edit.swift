// The edit of a queued operation: a new one takes its place, in one transaction (docs/outbox.md#steering).
import GRDB
package import RockpoolCore

extension DataStore {
    /// Puts an edited operation in the place of another: in its lane, before the later ones, with its dependencies and dependants.
    ///
    /// The old operation ends as `superseded`, reason `edited`, and keeps its client key, so that a repeated request is still recognised.
    /// `new` supplies request, body, entity and idempotency key; place, lane, priority, principal, expiry and base are those of the old
    /// one.
    /// - Parameter from: the states in which the old operation may be.
    /// - Returns: the new operation.
    /// - Throws: `.illegal`, `.notFound`, `.full`, `.unavailable`; nothing has changed then.
    package func replace(id: String, by new: QueuedWriteDraft, from: Set<OperationState>, now: Timestamp) async throws -> QueuedWrite {
        let cost = Cost.row(new.rowLength)
        let edited = try await translated {
            try await queue.commit(weight: cost / 2) { db in
                guard let old = try Self.fetch(in: db, where: "id = ?", [id]) else { throw DataStoreError.notFound(id: id) }
                try self.checkRoom(in: db, for: cost)
                try self.attachBlob(of: new.body, in: db)
                try new.insert(in: db, base: nil, now: now)
                let sequence = db.lastInsertedRowID
                try Self.transition(
                    in: db, sequence: old.sequence, from: old.state, to: .superseded, reason: .edited, allowed: from, update: .replaced,
                    values: [sequence.databaseValue], now: now)
                try Self.inherit(sequence, from: old.sequence, in: db)
                try Self.log(in: db, sequence: sequence, .pending, detail: "edited: \(old.id)", now: now)
                return try Self.fetch(in: db, where: "seq = ?", [sequence])
            }
        }
        if case .blob(let sha256, _) = new.body { releaseBlob(sha256) }
        return try edited ?? { throw DataStoreError.notFound(id: new.id) }()
    }

    private static func inherit(_ sequence: Int64, from old: Int64, in db: Database) throws {
        for statement in [
            OperationColumn.inherit,
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
}
