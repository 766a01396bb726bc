// A message that replaces the earlier ones of its lane (docs/outbox.md#messages).
import GRDB
package import RockpoolCore

extension DataStore {
    /// Deletes what came before an operation in its lane, but not what is in flight.
    /// - Returns: those of the deleted operations that were open.
    /// - Throws: `DataStoreError`; nothing has changed then.
    package func deleteEarlier(than operation: QueuedWrite) async throws -> [QueuedWrite] {
        let earlier = "upstream = ?1 AND lane = ?2 AND seq < ?3 AND state <> 'inflight'"
        let arguments: StatementArguments = [operation.upstream, operation.lane, operation.sequence]
        return try await recorded {
            try await queue.commit { db in
                let rows = try Row.fetchAll(
                    db,
                    sql: "SELECT \(OperationRow.lightColumns) FROM op WHERE \(earlier) AND \(OperationState.isOpen)",
                    arguments: arguments)
                let open = try rows.map(OperationRow.operation(from:))
                try db.execute(sql: "DELETE FROM op WHERE \(earlier)", arguments: arguments)
                return open
            }
        }
    }
}
