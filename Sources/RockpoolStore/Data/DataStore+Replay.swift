// The order of durable steps of a replay: lease committed → bytes sent → response read → outcome committed (docs/outbox.md#wire-rule).
import FoundationEssentials
import GRDB
import HTTPTypes
package import RockpoolCore

extension DataStore {
    /// Marks a pending operation as in flight. No byte of it may be sent before this returns.
    /// - Returns: nil when it is not pending (any more), or an operation that it must wait for is still open. The order within its
    ///   principal is enforced here as well; the order among principals is up to `ReplayMachine`.
    package func lease(id: String, now: Timestamp) async throws -> Operation? {
        try await recorded {
            try await queue.commit { db in
                try db.cachedStatement(sql: Self.leasing).execute(arguments: [now.milliseconds, id])
                guard db.changesCount == 1 else { return nil }
                try db.cachedStatement(sql: Self.attempting).execute(arguments: [id, now.milliseconds])
                guard var operation = try Self.fetch(db, where: "id = ?", [id]) else { return nil }
                // If the base operation was delivered, its result is the base. If it was given up, the operation it was built on takes its
                // place.
                if let base = operation.baseSequence, let delivered = try Self.delivered(db, beneath: base) {
                    operation.baseETag = try Self.etag(db, of: delivered)
                }
                return operation
            }
        }
    }

    /// Neither this nor `attempting` uses RETURNING or reads the table that it writes: for either, SQLite would create a temporary table
    /// every time.
    private static let leasing = """
        UPDATE op SET state = 'inflight', reason = NULL, first_sent_at = coalesce(first_sent_at, ?1)
        WHERE id = ?2 AND state = 'pending'
            AND NOT EXISTS (SELECT 1 FROM op AS earlier WHERE earlier.upstream = op.upstream AND earlier.lane = op.lane
                AND earlier.place < op.place AND earlier.principal IS op.principal AND earlier.state NOT IN (\(OperationRow.endedStates)))
            AND NOT EXISTS (SELECT 1 FROM op_dep JOIN op AS needed ON needed.seq = op_dep.needs
                WHERE op_dep.seq = op.seq AND needed.state NOT IN (\(OperationRow.endedStates)))
        """

    private static let attempting = """
        INSERT INTO attempt (seq, rev, n, started) VALUES (
            (SELECT seq FROM op WHERE id = ?1), (SELECT key_rev FROM op WHERE id = ?1),
            (SELECT coalesce(max(n), 0) + 1 FROM attempt WHERE seq = (SELECT seq FROM op WHERE id = ?1)), ?2)
        """

    /// Returns the operation, or if it came to nothing, the delivered one that it was ultimately built on; nil when there is none.
    private static func delivered(_ db: Database, beneath sequence: Int64) throws -> Int64? {
        try Int64.fetchOne(
            db.cachedStatement(
                sql: """
                    WITH RECURSIVE beneath (seq) AS (SELECT ? UNION
                        SELECT base_seq FROM beneath JOIN op USING (seq) WHERE state IN ('cancelled', 'superseded') AND base_seq IS NOT NULL)
                    SELECT seq FROM beneath JOIN op USING (seq) WHERE state = 'delivered'
                    """), arguments: [sequence])
    }

    /// Returns the strong ETag in an operation's response; nil when there was none.
    static func etag(_ db: Database, of sequence: Int64) throws -> String? {
        let fields = try Data.fetchOne(
            db.cachedStatement(sql: "SELECT resp_headers FROM op WHERE seq = ? AND state = 'delivered'"), arguments: [sequence])
        return EntityTag.condition(fields.flatMap { FieldCodec.decode($0) }?[.eTag])
    }

    /// Returns the strong ETag in the response of a delivered operation; nil when there was none, or the operation is not delivered.
    package func etag(of sequence: Int64) async throws -> String? {
        try await reading { try Self.etag($0, of: sequence) }
    }

    /// Records the outcome of an operation in flight.
    /// - Throws: `.illegal` when it is not in flight or the disposition's transition is not permitted, `.notFound`, `.unavailable`.
    package func finish(
        id: String, disposition: Disposition, result: OperationResult?, attempt: AttemptRecord, now: Timestamp
    ) async throws -> Operation {
        // The body of a response is kept only if there is space; the outcome must be recorded in any case.
        let ledger = footprint.ledger
        let isRoomy = ledger.used + ledger.reserved + Int64(result?.body.count ?? 0) * 2 < ledger.limit / 2
        let result = isRoomy ? result : result.map { OperationResult(head: $0.head, body: []) }
        return try await recorded {
            try await queue.commit(weight: Int64(result?.body.count ?? 0) + 4096) { db in
                let before = try Self.position(id, db)
                try Self.check(before.state, to: disposition.state, from: [.inflight])
                try Self.end(attempt, of: before.sequence, db, now: now)
                try Self.record(disposition, result, on: before, db, now: now)
                try self.map(before, disposition, db, now: now)
                try Self.hold(before, disposition, db)
                FailPoint.beforeOutcomeCommit.reached()
                try Self.log(db, before.sequence, disposition.state, detail: disposition.detail, now: now)
                return try self.known(id, db)
            }
        }
    }

    /// Stores the server's id of a created entity in the transaction that records the delivery, so that no crash can separate them.
    private func map(_ operation: Position, _ disposition: Disposition, _ db: Database, now: Timestamp) throws {
        guard let id = operation.localID, let mapping = disposition.mapping, disposition.state == .delivered else { return }
        try db.cachedStatement(sql: "UPDATE id_map SET server_id = ?, is_number = ?, server_url = ?, mapped_at = ? WHERE local_id = ?")
            .execute(arguments: [mapping.id.text, mapping.id.isNumber, mapping.url, now.milliseconds, id.text])
        db.afterNextTransaction { _ in self.localIDs.note(id, became: mapping) }
    }

    /// Delays the later operations in the lane while an earlier attempt may still run (docs/outbox.md#lane-holds).
    private static func hold(_ operation: Position, _ disposition: Disposition, _ db: Database) throws {
        guard let moment = disposition.holdsLaneUntil else { return }
        try db.cachedStatement(
            sql: """
                UPDATE op SET next_at = max(next_at, ?) WHERE upstream = ? AND lane = ? AND place > ? AND state = 'pending'
                    AND principal IS (SELECT principal FROM op WHERE seq = ?)
                """
        ).execute(arguments: [moment.milliseconds, operation.upstream, operation.lane, operation.place, operation.sequence])
    }

    /// Moves an operation that is not in flight: retry, discard, cancel, park. A retried dead operation has its answered attempts reset to
    /// 0.
    /// - Parameters:
    ///   - nextAttemptAt: nil keeps the present value.
    ///   - from: the states in which the operation may be.
    /// - Throws: `.illegal` when it is in another state or the transition is not permitted, `.notFound`, `.unavailable`.
    package func transition(
        id: String, to state: OperationState, reason: OperationReason?, nextAttemptAt: Timestamp? = nil, from: Set<OperationState>,
        now: Timestamp
    ) async throws -> Operation {
        try await move(id: id, by: Disposition(state: state, reason: reason, nextAttemptAt: nextAttemptAt), from: from, now: now)
    }

    /// Moves an operation by a whole disposition: after a probe of the upstream, an expiry, or a new credential.
    package func move(
        id: String, by disposition: Disposition, from: Set<OperationState>, now: Timestamp
    ) async throws -> Operation {
        let (state, reason) = (disposition.state, disposition.reason)
        return try await recorded {
            try await queue.commit { db in
                let before = try Self.position(id, db)
                try Self.check(before.state, to: state, from: from)
                if before.state == .inflight { try Self.end(AttemptRecord(sent: .maybe), of: before.sequence, db, now: now) }
                try db.cachedStatement(
                    sql: """
                        UPDATE op SET reason = ?2, next_at = coalesce(?3, next_at), ended_at = ?4,
                            answered_attempts = CASE WHEN state = 'dead' AND ?1 = 'pending' THEN 0 ELSE answered_attempts END,
                            probes = CASE WHEN ?6 THEN probes + 1 WHEN ?1 = 'uncertain' THEN probes ELSE 0 END, state = ?1
                        WHERE seq = ?5
                        """
                ).execute(arguments: [
                    state.rawValue, reason?.rawValue, Self.nextAt(disposition, now), Self.endedAt(state, now), before.sequence,
                    disposition.countsAsProbe,
                ])
                try self.map(before, disposition, db, now: now)
                if before.state == .conflicted, state != .conflicted {
                    try Self.closeConflict(of: before.sequence, by: reason, db, now: now)
                }
                try Self.log(db, before.sequence, state, detail: disposition.detail ?? reason?.rawValue, now: now)
                return try self.known(id, db)
            }
        }
    }

    /// Makes every pending operation due at once.
    /// - Returns: the number of pending operations.
    package func makeAllDue(now: Timestamp) async throws -> Int {
        try await recorded {
            try await queue.commit { db in
                try db.cachedStatement(sql: "UPDATE op SET next_at = ? WHERE state = 'pending'").execute(arguments: [now.milliseconds])
                return db.changesCount
            }
        }
    }

    /// The columns needed to move an operation; no others, because they are read for every operation sent.
    struct Position {
        var sequence: Int64
        var state: OperationState
        var place: Int64
        var upstream: String
        var lane: String
        var localID: LocalID?
    }

    static func position(_ id: String, _ db: Database) throws -> Position {
        let statement = try db.cachedStatement(sql: "SELECT seq, state, place, upstream, lane, local_id FROM op WHERE id = ?")
        guard let row = try Row.fetchOne(statement, arguments: [id]) else { throw DataStoreError.notFound(id: id) }
        var columns = RowReader(row)
        let sequence: Int64 = try columns.next()
        guard let state = try columns.word(OperationState.self) else { throw UnreadableRow(column: 1) }
        return Position(
            sequence: sequence, state: state, place: try columns.next(), upstream: try columns.next(), lane: try columns.next(),
            localID: try columns.nextIfAny(String.self).flatMap { LocalID($0) })
    }

    func known(_ id: String, _ db: Database) throws -> Operation {
        guard let operation = try Self.fetch(db, where: "id = ?", [id]) else { throw DataStoreError.notFound(id: id) }
        return operation
    }

    /// Checks a transition against the table in code, to throw a more specific error than the trigger.
    static func check(_ state: OperationState, to: OperationState, from: Set<OperationState>) throws {
        guard from.contains(state), state == to || OperationMachine.permits(from: state, to: to) else {
            throw DataStoreError.illegal(from: state, to: to)
        }
    }

    /// Returns the new `next_at`; nil keeps the present value. A parked operation is never due, so the column keeps the time of parking,
    /// from which the retention of an unproved one is counted (`Retention.unproved`).
    private static func nextAt(_ disposition: Disposition, _ now: Timestamp) -> Int64? {
        (disposition.nextAttemptAt ?? (disposition.state == .parked ? now : nil))?.milliseconds
    }

    /// Returns the end time. Dead operations have one too: their retention is counted from it.
    private static func endedAt(_ state: OperationState, _ now: Timestamp) -> Int64? {
        state.hasEnded || state == .dead ? now.milliseconds : nil
    }

    private static func end(_ attempt: AttemptRecord, of sequence: Int64, _ db: Database, now: Timestamp) throws {
        try db.cachedStatement(
            sql: """
                UPDATE attempt SET ended = ?1, fresh_conn = ?2, bytes_sent = ?3, bytes_total = ?4, status = ?5, error = ?6, evidence = ?7
                WHERE seq = ?8 AND ended IS NULL AND n = (SELECT max(n) FROM attempt WHERE seq = ?8)
                """
        ).execute(arguments: [
            now.milliseconds, attempt.isFreshConnection, attempt.bytesSent, attempt.bytesTotal, attempt.status, attempt.error,
            attempt.sent?.rawValue, sequence,
        ])
        // The lifetime of the key starts with the first byte sent: attempts that sent none do not start it (docs/outbox.md#keys).
        try db.cachedStatement(
            sql: """
                UPDATE op SET first_sent_at = NULL
                WHERE seq = ?1 AND NOT EXISTS (SELECT 1 FROM attempt
                    WHERE attempt.seq = ?1 AND attempt.rev = op.key_rev AND evidence IS NOT 'no')
                """
        ).execute(arguments: [sequence])
    }

    private static func record(
        _ disposition: Disposition, _ result: OperationResult?, on operation: Position, _ db: Database, now: Timestamp
    ) throws {
        let isAnswered = disposition.countsAsAnswered
        try db.cachedStatement(
            sql: """
                UPDATE op SET state = ?, reason = ?, next_at = coalesce(?, next_at), answered_attempts = answered_attempts + ?,
                    net_attempts = net_attempts + ?, ended_at = ?, last_error = ?, resp_status = ?,
                    resp_headers = ?, resp_body = sealed(?)
                WHERE seq = ?
                """
        ).execute(arguments: [
            disposition.state.rawValue, disposition.reason?.rawValue, nextAt(disposition, now),
            isAnswered ? 1 : 0, isAnswered ? 0 : 1, endedAt(disposition.state, now),
            disposition.state == .delivered ? nil : disposition.detail, result?.head.status,
            result.map { FieldCodec.encode($0.head.fields) }, result.map { Array($0.body.prefix(inlineLimit)).data },
            operation.sequence,
        ])
    }
}
