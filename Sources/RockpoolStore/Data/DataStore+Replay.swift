// The wire rule: lease committed → bytes sent → answer read → outcome committed (outbox.md §1.3).
import GRDB
package import RockpoolCore

extension DataStore {
    /// Marks a pending operation as being sent. Only when this has returned may a byte of it leave.
    /// - Returns: nil when it is not pending (any more).
    package func lease(id: String, now: Timestamp) async throws -> Operation? {
        try await recorded {
            try await queue.commit { db in
                let sequence = try Int64.fetchOne(
                    db,
                    sql: """
                        UPDATE op SET state = 'inflight', reason = NULL, first_sent_at = coalesce(first_sent_at, ?1)
                        WHERE id = ?2 AND state = 'pending' RETURNING seq
                        """, arguments: [now.milliseconds, id])
                guard let sequence else { return nil }
                try db.execute(
                    sql: "INSERT INTO attempt (seq, n, started) SELECT ?1, coalesce(max(n), 0) + 1, ?2 FROM attempt WHERE seq = ?1",
                    arguments: [sequence, now.milliseconds])
                return try Self.fetch(db, where: "seq = ?", [sequence])
            }
        }
    }

    /// Records what became of an operation that was being sent.
    /// - Throws: `.illegal` when it is not in flight or the disposition leads where it cannot go, `.notFound`, `.unavailable`.
    package func finish(
        id: String, disposition: Disposition, result: OperationResult?, attempt: AttemptRecord, now: Timestamp
    ) async throws -> Operation {
        // An answer's body is kept where there is room: what became of the operation must be recorded in any case.
        let ledger = footprint.ledger
        let isRoomy = ledger.used + ledger.reserved + Int64(result?.body.count ?? 0) * 2 < ledger.limit / 2
        let result = isRoomy ? result : result.map { OperationResult(head: $0.head, body: []) }
        return try await recorded {
            try await queue.commit(weight: Int64(result?.body.count ?? 0) + 4096) { db in
                let before = try self.known(id, db)
                try Self.check(before.state, to: disposition.state, from: [.inflight])
                try Self.end(attempt, of: before.sequence, db, now: now)
                try Self.record(disposition, result, on: before, db, now: now)
                try Self.log(db, before.sequence, disposition.state, detail: disposition.detail, now: now)
                return try self.known(id, db)
            }
        }
    }

    /// Moves an operation that is not being sent: retry, discard, cancel, park. A dead one that is tried again starts counting anew.
    /// - Parameters:
    ///   - nextAttemptAt: nil leaves it.
    ///   - from: the states it may be in.
    /// - Throws: `.illegal` when it is in another or cannot go there, `.notFound`, `.unavailable`.
    package func transition(
        id: String, to state: OperationState, reason: OperationReason?, nextAttemptAt: Timestamp? = nil, from: Set<OperationState>,
        now: Timestamp
    ) async throws -> Operation {
        try await recorded {
            try await queue.commit { db in
                let before = try self.known(id, db)
                try Self.check(before.state, to: state, from: from)
                if before.state == .inflight { try Self.end(AttemptRecord(sent: .maybe), of: before.sequence, db, now: now) }
                try db.execute(
                    sql: """
                        UPDATE op SET reason = ?2, next_at = coalesce(?3, next_at), ended_at = ?4,
                            answered_attempts = CASE WHEN state = 'dead' AND ?1 = 'pending' THEN 0 ELSE answered_attempts END, state = ?1
                        WHERE seq = ?5
                        """,
                    arguments: [
                        state.rawValue, reason?.rawValue, nextAttemptAt?.milliseconds, Self.endedAt(state, now), before.sequence,
                    ])
                try Self.log(db, before.sequence, state, detail: reason?.rawValue, now: now)
                return try self.known(id, db)
            }
        }
    }

    /// Makes every pending operation due at once.
    /// - Returns: how many there are.
    package func makeAllDue(now: Timestamp) async throws -> Int {
        try await recorded {
            try await queue.commit { db in
                try db.execute(sql: "UPDATE op SET next_at = ? WHERE state = 'pending'", arguments: [now.milliseconds])
                return db.changesCount
            }
        }
    }

    private func known(_ id: String, _ db: Database) throws -> Operation {
        guard let operation = try Self.fetch(db, where: "id = ?", [id]) else { throw DataStoreError.notFound(id: id) }
        return operation
    }

    /// The table in code, for an error that says more than the trigger's.
    private static func check(_ state: OperationState, to: OperationState, from: Set<OperationState>) throws {
        guard from.contains(state), state == to || OperationMachine.permits(from: state, to: to) else {
            throw DataStoreError.illegal(from: state, to: to)
        }
    }

    /// Dead operations have an end too: from it their keeping is counted.
    private static func endedAt(_ state: OperationState, _ now: Timestamp) -> Int64? {
        state.hasEnded || state == .dead ? now.milliseconds : nil
    }

    private static func end(_ attempt: AttemptRecord, of sequence: Int64, _ db: Database, now: Timestamp) throws {
        try db.execute(
            sql: """
                UPDATE attempt SET ended = ?1, fresh_conn = ?2, bytes_sent = ?3, bytes_total = ?4, status = ?5, error = ?6, evidence = ?7
                WHERE seq = ?8 AND ended IS NULL AND n = (SELECT max(n) FROM attempt WHERE seq = ?8)
                """,
            arguments: [
                now.milliseconds, attempt.isFreshConnection, attempt.bytesSent, attempt.bytesTotal, attempt.status, attempt.error,
                attempt.sent?.rawValue, sequence,
            ])
        // The key's clock starts with the first byte sent: attempts that sent none do not start it (outbox.md §1.7).
        try db.execute(
            sql: """
                UPDATE op SET first_sent_at = NULL
                WHERE seq = ?1 AND NOT EXISTS (SELECT 1 FROM attempt WHERE seq = ?1 AND evidence IS NOT 'no')
                """, arguments: [sequence])
    }

    private static func record(
        _ disposition: Disposition, _ result: OperationResult?, on operation: Operation, _ db: Database, now: Timestamp
    ) throws {
        let isAnswered = disposition.countsAsAnswered
        try db.execute(
            sql: """
                UPDATE op SET state = ?, reason = ?, next_at = coalesce(?, next_at), answered_attempts = answered_attempts + ?,
                    net_attempts = net_attempts + ?, ended_at = ?, last_error = ?, lease_until = NULL, resp_status = ?,
                    resp_headers = ?, resp_body = ?
                WHERE seq = ?
                """,
            arguments: [
                disposition.state.rawValue, disposition.reason?.rawValue, disposition.nextAttemptAt?.milliseconds,
                isAnswered ? 1 : 0, isAnswered ? 0 : 1, endedAt(disposition.state, now),
                disposition.state == .delivered ? nil : disposition.detail, result?.head.status,
                result.map { FieldCodec.encode($0.head.fields) }, result.map { Array($0.body.prefix(inlineLimit)).data },
                operation.sequence,
            ])
    }
}
