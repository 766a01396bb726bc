// Conflicts and their outcome, in one transaction: both sides are kept before either of them wins (docs/outbox.md#merging, P9).
import FoundationEssentials
import GRDB
package import RockpoolCore

extension DataStore {
    /// Stores a conflict of an operation and applies the decision of its strategy to the operation.
    ///
    /// An already open conflict keeps its id and its time; everything else is replaced.
    /// - Parameters:
    ///   - conflict: with a decision it is closed: at `closedAt` or else now, by `decidedBy` or else the strategy.
    ///   - decision: nil leaves the conflict open for a person, and the operation waits as `conflicted`.
    ///   - rounds: the operation's rounds when it was examined as `conflicted`; another node may have decided since. Nil for a conflict that
    ///     is found before.
    ///   - isListed: false if the decided conflict is not kept, because the write meets an action of its own client.
    /// - Throws: `.illegal` when the operation is being sent, is parked, has ended, or was decided since, `.notFound`, `.unavailable`. Nothing has changed
    ///   then.
    package func meet(
        _ conflict: Conflict, decision: ConflictDecision?, after rounds: Int? = nil, isListed: Bool = true, now: Timestamp
    )
        async throws -> QueuedWrite
    {
        var met = conflict
        met.closedAt = decision.map { _ in conflict.closedAt ?? now }
        met.decidedBy = decision.map { _ in conflict.decidedBy ?? .strategy }
        if decision == nil { met.resolution = nil }
        return try await decided(by: decision, sides: [met.base, met.mine, met.theirs, met.result]) { [met] db in
            let operation = try Self.position(met.operation, in: db)
            if let rounds {
                let isAsExamined = try operation.state == .conflicted && rounds == Self.rounds(of: operation.sequence, in: db)
                guard isAsExamined else { throw DataStoreError.illegal(from: operation.state, to: .conflicted) }
            }
            try Self.transition(
                in: db, sequence: operation.sequence, from: operation.state, to: .conflicted,
                reason: OperationReason(rawValue: met.kind.rawValue),
                allowed: Self.meeting, now: now)
            let number = try ConflictRow.save(met, of: operation.sequence, in: db)
            if let decision {
                try self.carryOut(
                    decision, of: number, on: operation.sequence, from: .conflicted, detail: isListed ? nil : Self.ownAction, in: db,
                    now: now
                )
                if !isListed { try db.execute(sql: "DELETE FROM conflict WHERE n = ?", arguments: [number]) }
            }
            return met.operation
        }
    }

    /// The history's text of a merge that is no conflict.
    private static let ownAction = "merged with the effect of an action of its own client"

    /// The states in which a conflict may be found: before sending, by a probe, or by a refusal.
    private static let meeting: Set<OperationState> = [.pending, .uncertain, .conflicted]

    /// Applies a person's decision about an open conflict.
    /// - Parameter conflict: the decided conflict with its `resolution`, `result` and `fields`, and with theirs at the time of the
    ///   decision.
    /// - Throws: `.conflictNotFound`, `.conflictDecided`, `.illegal` when the operation has moved on, `.unavailable`. Nothing has changed
    ///   then.
    package func resolve(
        _ conflict: Conflict, decision: ConflictDecision, now: Timestamp
    ) async throws -> QueuedWrite {
        let id = conflict.id
        return try await decided(by: decision, sides: [conflict.theirs, conflict.result]) { db in
            let row = try Row.fetchOne(
                db, sql: "SELECT n, closed IS NULL, op.id FROM conflict JOIN op USING (seq) WHERE conflict.id = ?", arguments: [id])
            guard let row else { throw DataStoreError.conflictNotFound(id: id) }
            var columns = RowReader(row)
            let (number, isOpen): (Int64, Bool) = (try columns.next(), try columns.next())
            guard isOpen else { throw DataStoreError.conflictDecided(id: id) }
            let operationID: String = try columns.next()
            let operation = try Self.position(operationID, in: db)
            try db.execute(
                sql: """
                    UPDATE conflict SET closed = ?, resolution = ?, decided_by = 'person', theirs_sha = ?, result_sha = ?, fields = ?
                    WHERE n = ?
                    """,
                arguments: [
                    now.milliseconds, conflict.resolution?.rawValue, try conflict.theirs?.pin(in: db), try conflict.result?.pin(in: db),
                    ConflictRow.text(of: conflict.fields), number,
                ])
            try self.carryOut(decision, of: number, on: operation.sequence, from: operation.state, in: db, now: now)
            return operationID
        }
    }

    /// Runs `body` in one transaction, even on a full disk; the blob of a revision is released once that transaction references it.
    /// - Parameter body: returns the operation's id.
    private func decided(
        by decision: ConflictDecision?, sides: [Conflict.Side?], _ body: @escaping @Sendable (Database) throws -> String
    ) async throws -> QueuedWrite {
        var weight = sides.reduce(Int64.kib(4)) { $0 + Int64($1?.body.count ?? 0) }
        if case .resend(let revision) = decision { weight += revision.body.length }
        let operation = try await recorded {
            try await queue.commit(weight: weight) { db in
                let operation = try self.known(try body(db), in: db)
                FailPoint.merging.reached()
                return operation
            }
        }
        if case .resend(let revision) = decision, case .blob(let sha256, _) = revision.body { releaseBlob(sha256) }
        return operation
    }
}
