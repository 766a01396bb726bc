// What the outbox database holds of an identity besides its writes, and its removal (docs/outbox.md#forgotten).
import GRDB
import RockpoolCore

/// The writes of one principal at one upstream that have not ended.
package struct WaitingWrites: Hashable, Sendable {
    package var principal: String
    /// Name of the upstream.
    package var upstream: String
    package var count: Int
}

extension DataStore {
    /// Returns the number of waiting writes of each principal, at each upstream.
    /// - Throws: `.corrupt`, `DatabaseError`.
    package func waitingWrites() async throws -> [WaitingWrites] {
        try await reading { db in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT principal, upstream, count(*) FROM op WHERE \(OperationState.isOpen) AND principal <> ''
                    GROUP BY principal, upstream ORDER BY principal, upstream
                    """)
            return try rows.map { row in
                var columns = RowReader(row)
                return WaitingWrites(principal: try columns.next(), upstream: try columns.next(), count: try columns.next())
            }
        }
    }

    /// Returns the ids of the waiting writes of a principal, the oldest first.
    /// - Throws: `.corrupt`, `DatabaseError`.
    package func waitingIDs(of principal: String) async throws -> [String] {
        try await reading { db in
            try String.fetchAll(
                db, sql: "SELECT id FROM op WHERE principal = ? AND \(OperationState.isOpen) ORDER BY seq",
                arguments: [principal])
        }
    }

    /// Returns the sealed credentials' principals with their upstreams.
    /// - Throws: `.corrupt`, `DatabaseError`.
    package func sealedPrincipals() async throws -> [String: String] {
        try await reading { db in
            let rows = try Row.fetchAll(db, sql: "SELECT principal, upstream FROM credential").map { row in
                var columns = RowReader(row)
                return (try columns.next(String.self), try columns.next(String.self))
            }
            return Dictionary(rows) { first, _ in first }
        }
    }

    /// Deletes the sealed credential, the proofs and the pull cursors of a principal. Proofs are kept while writes of it wait: they lead its
    /// next token to them.
    /// - Throws: `.full`, `.unavailable`.
    package func forget(principal: String) async throws {
        try await recorded {
            try await queue.commit { db in
                try db.execute(sql: "DELETE FROM credential WHERE principal = ?", arguments: [principal])
                try db.execute(
                    sql: """
                        DELETE FROM proved WHERE principal = ?1 AND NOT EXISTS (
                            SELECT 1 FROM op WHERE principal = ?1 AND \(OperationState.isOpen))
                        """, arguments: [principal])
                try db.execute(
                    sql: "DELETE FROM cursor WHERE substr(scope, -length(?1) - 1) = '|' || ?1", arguments: [principal])
            }
        }
    }

    /// Deletes the pull cursors of an upstream that belong to no principal.
    /// - Throws: `.full`, `.unavailable`.
    package func forgetPulls(of upstream: String) async throws {
        try await recorded {
            try await queue.commit(scope: .own) { db in
                try db.execute(
                    sql: "DELETE FROM cursor WHERE substr(scope, 1, length(?1) + 1) = ?1 || '|' AND substr(scope, -1) = '|'",
                    arguments: [upstream])
            }
        }
    }
}
