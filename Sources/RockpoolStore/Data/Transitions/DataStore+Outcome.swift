// The outcomes of operations: after an attempt, a probe, an expiry or a command (docs/outbox.md#wire-rule, docs/outbox.md#answers).
import FoundationEssentials
import GRDB
package import RockpoolCore

extension DataStore {
    /// Records the outcome of an operation in flight.
    /// - Throws: `.illegal` when it is not in flight or the disposition's transition is not permitted, `.notFound`, `.unavailable`.
    package func finish(
        id: String, disposition: Disposition, result: OperationResult?, attempt: AttemptRecord, now: Timestamp
    ) async throws -> QueuedWrite {
        // The body of a response is kept only if there is space; the outcome must be recorded in any case.
        let ledger = footprint.ledger
        let isRoomy = ledger.used + ledger.reserved + Int64(result?.body.count ?? 0) * 2 < ledger.limit / 2
        let result = isRoomy ? result : result.map { OperationResult(head: $0.head, body: []) }
        return try await recorded {
            try await queue.commit(weight: Int64(result?.body.count ?? 0) + .kib(4)) { db in
                let before = try Self.position(id, in: db)
                try Self.record(disposition, result, on: before, in: db, now: now)
                try attempt.end(in: db, of: before.sequence, now: now)
                try self.map(before, disposition: disposition, in: db, now: now)
                try Self.hold(before, disposition: disposition, in: db)
                FailPoint.beforeOutcomeCommit.reached()
                return try self.known(id, in: db)
            }
        }
    }

    /// Stores the server's id of a created entity in the transaction that records the delivery, so that no crash can separate them.
    private func map(_ operation: Position, disposition: Disposition, in db: Database, now: Timestamp) throws {
        guard let id = operation.localID, let mapping = disposition.mapping, disposition.state == .delivered else { return }
        try db.cachedStatement(sql: "UPDATE id_map SET server_id = ?, is_number = ?, server_url = ?, mapped_at = ? WHERE local_id = ?")
            .execute(arguments: [mapping.id.text, mapping.id.isNumber, mapping.url, now.milliseconds, id.text])
        db.afterNextTransaction { _ in self.localIDs.note(id, became: mapping) }
    }

    /// Delays the later operations in the lane while an earlier attempt may still run (docs/outbox.md#lane-holds).
    private static func hold(_ operation: Position, disposition: Disposition, in db: Database) throws {
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
    ) async throws -> QueuedWrite {
        try await move(id: id, by: Disposition(state: state, reason: reason, nextAttemptAt: nextAttemptAt), from: from, now: now)
    }

    /// Moves an operation by a whole disposition: after a probe of the upstream, an expiry, or a new credential.
    package func move(
        id: String, by disposition: Disposition, from: Set<OperationState>, now: Timestamp
    ) async throws -> QueuedWrite {
        try await recorded {
            try await queue.commit { db in
                let before = try Self.position(id, in: db)
                try Self.transition(
                    in: db, sequence: before.sequence, from: before.state, to: disposition.state, reason: disposition.reason, allowed: from,
                    detail: disposition.detail, nextAttemptAt: disposition.nextAttemptAt, countsAsProbe: disposition.countsAsProbe, now: now
                )
                if before.state == .inflight { try AttemptRecord(sent: .maybe).end(in: db, of: before.sequence, now: now) }
                try self.map(before, disposition: disposition, in: db, now: now)
                return try self.known(id, in: db)
            }
        }
    }

    private static let answered = TransitionUpdate(
        """
        answered_attempts = answered_attempts + ?, net_attempts = net_attempts + ?, last_error = ?, resp_status = ?, resp_headers = ?,
            resp_body = sealed(?)
        """)

    private static func record(
        _ disposition: Disposition, _ result: OperationResult?, on operation: Position, in db: Database, now: Timestamp
    ) throws {
        let isAnswered = disposition.countsAsAnswered
        try transition(
            in: db, sequence: operation.sequence, from: operation.state, to: disposition.state, reason: disposition.reason,
            allowed: [.inflight],
            detail: disposition.detail, nextAttemptAt: disposition.nextAttemptAt, update: answered,
            values: [
                isAnswered ? 1 : 0, isAnswered ? 0 : 1, disposition.state == .delivered ? nil : disposition.detail, result?.head.status,
                result.map { FieldCodec.encode($0.head.fields) }, result.map { Array($0.body.prefix(inlineLimit)).data },
            ], now: now)
    }
}
