// The bases of the writes behind an action (docs/outbox.md#base).
import GRDB
package import RockpoolCore

extension DataStore {
    /// Returns the strong ETags of the versions that open later writes of the same principal to the same entity build on.
    package func laterBases(after operation: QueuedWrite) async throws -> Set<String> {
        try await reading { db in Set(try Self.later(than: operation, in: db).map(\.etag)) }
    }

    /// Makes `state` the base of those later writes that build on the version `etag`.
    package func rebase(after operation: QueuedWrite, from etag: String, to state: Conflict.Side) async throws {
        try await recorded {
            try await queue.commit { db in
                let moved = try Self.later(than: operation, in: db).filter { $0.etag == etag }
                guard !moved.isEmpty else { return }
                let name = try state.pin(in: db)
                let statement = try db.cachedStatement(sql: "UPDATE op SET base_etag = ?, base_sha = ?, base_seq = NULL WHERE seq = ?")
                for write in moved { try statement.execute(arguments: [state.etag, name, write.sequence]) }
            }
        }
    }

    private static func later(than operation: QueuedWrite, in db: Database) throws -> [(sequence: Int64, etag: String)] {
        let statement = try db.cachedStatement(
            sql: """
                SELECT seq, base_etag, base_seq FROM op WHERE upstream = ? AND entity = ? AND principal = ? AND seq > ?
                    AND state NOT IN (\(OperationRow.endedStates)) AND method <> 'POST'
                """)
        let arguments: StatementArguments = [
            operation.upstream, operation.entity ?? "", operation.principal ?? "", operation.sequence,
        ]
        return try Row.fetchAll(statement, arguments: arguments).compactMap { row in
            var columns = RowReader(row)
            let sequence: Int64 = try columns.next()
            let pinned: String? = try columns.nextIfAny()
            let base: Int64? = try columns.nextIfAny()
            guard let etag = try base.map({ try etag(in: db, of: $0) }) ?? pinned else { return nil }
            return (sequence, etag)
        }
    }
}
