// The bases of the writes behind an action (docs/outbox.md#base).
import GRDB
package import RockpoolCore

extension DataStore {
    /// Returns the open later writes of the same principal to the same entity that have a base of their own, with the strong ETag of the
    /// version they build on: that of the copy their client saw, or of the answer to an earlier write; nil where none is known.
    package func laterBases(after operation: QueuedWrite) async throws -> [(sequence: Int64, etag: String?)] {
        try await reading { db in
            let statement = try db.cachedStatement(
                sql: """
                    SELECT seq, base_etag, base_seq FROM op WHERE upstream = ? AND lane = ? AND entity = ? AND principal = ? AND seq > ?
                        AND \(OperationState.isOpen) AND method <> 'POST' AND (base_seq IS NULL OR base_seq < ?)
                    """)
            let arguments: StatementArguments = [
                operation.upstream, operation.lane, operation.entity ?? "", operation.principal ?? "", operation.sequence,
                operation.sequence,
            ]
            return try Row.fetchAll(statement, arguments: arguments).map { row in
                var columns = RowReader(row)
                let sequence: Int64 = try columns.next()
                let pinned: String? = try columns.nextIfAny()
                let base: Int64? = try columns.nextIfAny()
                return (sequence, try base.map { try Self.etag(in: db, of: $0) } ?? pinned)
            }
        }
    }

    /// Returns the last action of the same principal on the same entity that was delivered after a write was accepted, and before which the
    /// entity was read; nil without one.
    package func lastAction(before operation: QueuedWrite) async throws -> QueuedWrite? {
        try await reading { db in
            let statement = try db.cachedStatement(
                sql: """
                    SELECT \(OperationRow.columns) FROM op WHERE upstream = ? AND lane = ? AND entity = ? AND principal = ? AND seq < ?
                        AND method = 'POST' AND local_id IS NULL AND base_sha IS NOT NULL AND state = 'delivered' AND ended_at >= ?
                    ORDER BY seq DESC LIMIT 1
                    """)
            let arguments: StatementArguments = [
                operation.upstream, operation.lane, operation.entity ?? "", operation.principal ?? "", operation.sequence,
                operation.acceptedAt.milliseconds,
            ]
            return try Row.fetchOne(statement, arguments: arguments).map(OperationRow.operation(from:))
        }
    }

    /// True if an action of the same principal on the same entity lost its answer while its client waited, and was delivered after a
    /// write was accepted. The state before such an action is not known (an action that was queued pins it).
    package func followsUnseenAction(_ operation: QueuedWrite) async throws -> Bool {
        try await reading { db in
            let statement = try db.cachedStatement(
                sql: """
                    SELECT EXISTS (SELECT 1 FROM op WHERE upstream = ? AND lane = ? AND entity = ? AND principal = ? AND seq < ?
                        AND method = 'POST' AND local_id IS NULL AND base_sha IS NULL AND state = 'delivered' AND ended_at >= ?
                        AND EXISTS (SELECT 1 FROM attempt WHERE attempt.seq = op.seq AND \(AttemptRecord.mayStillRun)))
                    """)
            return try Bool.fetchOne(
                statement,
                arguments: [
                    operation.upstream, operation.lane, operation.entity ?? "", operation.principal ?? "", operation.sequence,
                    operation.acceptedAt.milliseconds,
                ]) ?? false
        }
    }

    /// Makes `state` the base of open writes.
    package func rebase(_ sequences: [Int64], to state: Conflict.Side) async throws {
        try await recorded {
            try await queue.commit { db in
                let name = try state.pin(in: db)
                let statement = try db.cachedStatement(
                    sql: """
                        UPDATE op SET base_etag = ?, base_sha = ?, base_seq = NULL
                        WHERE seq = ? AND \(OperationState.isOpen)
                        """)
                for sequence in sequences { try statement.execute(arguments: [EntityTag.condition(in: state.etag), name, sequence]) }
            }
        }
    }
}
