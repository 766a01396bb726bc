// Conflicts and their outcome, in one transaction: both sides are kept before either of them wins (docs/outbox.md#merging, P9).
import FoundationEssentials
import GRDB
import HTTPTypes
package import RockpoolCore

extension DataStore {
    /// Stores a conflict of an operation and applies the decision of its strategy to the operation.
    ///
    /// An already open conflict keeps its id and its time; everything else is replaced.
    /// - Parameters:
    ///   - conflict: with a decision it is closed: at `closedAt` or else now, by `decidedBy` or else the strategy.
    ///   - decision: nil leaves the conflict open for a person, and the operation waits as `conflicted`.
    /// - Throws: `.illegal` when the operation is being sent, is parked or has ended, `.notFound`, `.unavailable`. Nothing has changed
    ///   then.
    package func meet(_ conflict: Conflict, decision: ConflictDecision?, now: Timestamp) async throws -> Operation {
        var met = conflict
        met.closedAt = decision.map { _ in conflict.closedAt ?? now }
        met.decidedBy = decision.map { _ in conflict.decidedBy ?? .strategy }
        if decision == nil { met.resolution = nil }
        return try await decided(by: decision, sides: [met.base, met.mine, met.theirs, met.result]) { [met] db in
            let operation = try Self.position(met.operation, db)
            try Self.check(operation.state, to: .conflicted, from: Self.meeting)
            try db.cachedStatement(sql: "UPDATE op SET state = 'conflicted', reason = ? WHERE seq = ?")
                .execute(arguments: [met.kind.rawValue, operation.sequence])
            if operation.state != .conflicted { try Self.log(db, operation.sequence, .conflicted, detail: met.kind.rawValue, now: now) }
            let number = try ConflictRow.save(met, of: operation.sequence, db)
            if let decision { try self.carryOut(decision, of: number, on: operation, db, now: now) }
            return met.operation
        }
    }

    /// The states in which a conflict may be found: before sending, by a probe, or by a refusal.
    private static let meeting: Set<OperationState> = [.pending, .uncertain, .conflicted]

    /// Applies a person's decision about an open conflict.
    /// - Parameter conflict: the decided conflict with its `resolution`, `result` and `fields`, and with theirs at the time of the
    ///   decision.
    /// - Throws: `.conflictNotFound`, `.conflictDecided`, `.illegal` when the operation has moved on, `.unavailable`. Nothing has changed
    ///   then.
    package func resolve(
        _ conflict: Conflict, decision: ConflictDecision, now: Timestamp
    ) async throws -> Operation {
        let id = conflict.id
        return try await decided(by: decision, sides: [conflict.theirs, conflict.result]) { db in
            let row = try Row.fetchOne(
                db, sql: "SELECT n, closed IS NULL, op.id FROM conflict JOIN op USING (seq) WHERE conflict.id = ?", arguments: [id])
            guard let row else { throw DataStoreError.conflictNotFound(id: id) }
            var columns = RowReader(row)
            let (number, isOpen): (Int64, Bool) = (try columns.next(), try columns.next())
            guard isOpen else { throw DataStoreError.conflictDecided(id: id) }
            let operationID: String = try columns.next()
            let operation = try Self.position(operationID, db)
            try Self.check(operation.state, to: decision.state, from: [.conflicted])
            try db.execute(
                sql: """
                    UPDATE conflict SET closed = ?, resolution = ?, decided_by = 'person', theirs_sha = ?, result_sha = ?, fields = ?
                    WHERE n = ?
                    """,
                arguments: [
                    now.milliseconds, conflict.resolution?.rawValue, try conflict.theirs?.pin(db), try conflict.result?.pin(db),
                    ConflictRow.text(of: conflict.fields), number,
                ])
            try self.carryOut(decision, of: number, on: operation, db, now: now)
            return operationID
        }
    }

    /// Closes the open conflict of an operation after another command of a person. For a discarded operation theirs stands; for a retried
    /// or edited one, the resolution stays unknown until its next attempt.
    static func closeConflict(of sequence: Int64, by reason: OperationReason?, _ db: Database, now: Timestamp) throws {
        let resolution: Conflict.Resolution? = reason == .discarded ? .theirs : nil
        try db.cachedStatement(
            sql: "UPDATE conflict SET closed = ?, resolution = ?, decided_by = 'person' WHERE seq = ? AND closed IS NULL"
        ).execute(arguments: [now.milliseconds, resolution?.rawValue, sequence])
    }

    // MARK: outcome of the operation

    /// Runs `body` in one transaction, even on a full disk; the blob of a revision is released once that transaction references it.
    /// - Parameter body: returns the operation's id.
    private func decided(
        by decision: ConflictDecision?, sides: [Conflict.Side?], _ body: @escaping @Sendable (Database) throws -> String
    ) async throws -> Operation {
        var weight = sides.reduce(4096) { $0 + Int64($1?.body.count ?? 0) }
        if case .resend(let revision) = decision { weight += revision.body.length }
        let operation = try await recorded {
            try await queue.commit(weight: weight) { db in
                let operation = try self.known(try body(db), db)
                FailPoint.merging.reached()
                return operation
            }
        }
        if case .resend(let revision) = decision, case .blob(let sha256, _) = revision.body { releaseBlob(sha256) }
        return operation
    }

    private func carryOut(_ decision: ConflictDecision, of conflict: Int64?, on operation: Position, _ db: Database, now: Timestamp) throws
    {
        switch decision {
        case .resend(let revision): try revise(operation, revision, db, now: now)
        case .yield:
            try db.execute(
                sql: "UPDATE op SET state = 'superseded', reason = 'yielded', ended_at = ? WHERE seq = ?",
                arguments: [now.milliseconds, operation.sequence])
        case .delivered: try Self.deliver(operation, conflict, db, now: now)
        }
        if decision.leavesMine { try Self.release(operation, conflict, db) }
        let detail = try String.fetchOne(
            db, sql: "SELECT 'conflict ' || id || coalesce(' ' || resolution, '') FROM conflict WHERE n = ?", arguments: [conflict])
        try Self.log(db, operation.sequence, decision.state, detail: detail, now: now)
    }

    /// Replaces the request of an operation. Earlier attempts count only as history: the revision has not been sent or tried.
    private func revise(_ operation: Position, _ revision: RequestRevision, _ db: Database, now: Timestamp) throws {
        try attachBlob(of: revision.body, db)
        let (inline, blob) = revision.body.columns
        let request = revision.request
        try db.cachedStatement(
            sql: """
                UPDATE op SET state = 'pending', reason = NULL, next_at = ?, origin = ?, method = ?, target = ?, intent = ?, headers = ?,
                    content_type = ?, body = sealed(?), blob_sha = ?, body_len = ?, idem_key = ?, key_origin = 'proxy', key_rev = key_rev + 1,
                    base_sha = ?, base_etag = ?, base_seq = NULL, first_sent_at = NULL, answered_attempts = 0, probes = 0
                WHERE seq = ?
                """
        ).execute(arguments: [
            now.milliseconds, request.origin.url, request.method.rawValue, request.target, NewOperation.intent(of: request.method),
            FieldCodec.encode(NewOperation.bare(request.fields)), request.fields[.contentType], inline, blob, revision.body.length,
            revision.idempotencyKey, try revision.base?.pin(db), revision.baseETag, operation.sequence,
        ])
    }

    /// Ends an operation as delivered although its request was refused: of the response only the ETag is kept, that of theirs, which later
    /// writes build on.
    private static func deliver(_ operation: Position, _ conflict: Int64?, _ db: Database, now: Timestamp) throws {
        let etag = try String.fetchOne(
            db, sql: "SELECT etag FROM snapshot JOIN conflict ON sha = theirs_sha WHERE n = ? AND etag IS NOT NULL", arguments: [conflict])
        try db.execute(
            sql: """
                UPDATE op SET state = 'delivered', reason = 'probed', ended_at = ?, last_error = NULL, resp_status = NULL,
                    resp_headers = ?, resp_body = NULL WHERE seq = ?
                """, arguments: [now.milliseconds, etag.map { FieldCodec.encode([.eTag: $0]) }, operation.sequence])
    }

    /// Detaches later writes from a result that did not come about, including writes built on it through operations that came to nothing.
    /// The representation their clients saw stays their base, where it is known, and they are not sent with an ETag of the result.
    private static func release(_ operation: Position, _ conflict: Int64?, _ db: Database) throws {
        try db.execute(
            sql: """
                WITH RECURSIVE built (seq) AS (SELECT ?1 UNION
                    SELECT op.seq FROM built JOIN op ON op.base_seq = built.seq WHERE op.state IN ('cancelled', 'superseded'))
                UPDATE op SET base_sha = coalesce(base_sha, (SELECT mine_sha FROM conflict WHERE n = ?2 AND base_seq = ?1)),
                    base_seq = NULL, base_etag = NULL
                WHERE base_seq IN (SELECT seq FROM built) AND state NOT IN (\(OperationRow.endedStates))
                """, arguments: [operation.sequence, conflict])
    }
}
