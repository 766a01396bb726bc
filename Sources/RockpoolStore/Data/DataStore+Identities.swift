// Credentials accepted by the upstream and their principals; the operations of an identity follow it to its new name
// (docs/caching.md#partitions *Identity*,
// docs/outbox.md#credentials).
import FoundationEssentials
import GRDB
import RockpoolCore

extension DataStore {
    /// Maximum number of proved credentials; the oldest are dropped.
    package static let provedLimit = 10_000

    /// Returns the stored credentials, the oldest first. Blocks: for the start only.
    package func provedCredentials() throws -> [ProvedCredential] {
        try database.pool.read { db in
            try Row.fetchAll(db, sql: "SELECT token, principal, at FROM proved ORDER BY at").map { row in
                var columns = RowReader(row)
                return ProvedCredential(
                    name: Digest.hex(try columns.next(Data.self)), principal: try columns.next(),
                    at: Timestamp(milliseconds: try columns.next()))
            }
        }
    }

    /// Stores a proof and moves the operations accepted under the credential's own name to its principal, in one commit.
    /// - Parameter gone: the names of others, which are removed.
    /// - Returns: the number of moved operations.
    /// - Throws: `.full`, `.unavailable`.
    @discardableResult
    package func keep(_ proved: ProvedCredential, insteadOf gone: [String] = []) async throws -> Int {
        guard let token = Digest.bytes(proved.name) else { return 0 }
        return try await translated {
            try await queue.commit { db in
                try db.execute(
                    sql: """
                        INSERT INTO proved (token, principal, at) VALUES (?1, ?2, ?3)
                        ON CONFLICT (token) DO UPDATE SET principal = ?2, at = ?3
                        """, arguments: [token.data, proved.principal, proved.at.milliseconds])
                for name in gone.compactMap({ Digest.bytes($0) }) {
                    try db.execute(sql: "DELETE FROM proved WHERE token = ?", arguments: [name.data])
                }
                try db.execute(
                    sql: "DELETE FROM proved WHERE token IN (SELECT token FROM proved ORDER BY at DESC LIMIT -1 OFFSET ?)",
                    arguments: [Self.provedLimit])
                return try Self.rename(principal: proved.name, to: proved.principal, in: db)
            }
        }
    }

    /// Renames the principal of its open operations and of those with a client key, also within the names of their lanes.
    /// - Returns: the number of renamed operations.
    /// - Throws: `.full`, `.unavailable`.
    @discardableResult
    package func rename(principal: String, to name: String) async throws -> Int {
        try await translated { try await queue.commit { try Self.rename(principal: principal, to: name, in: $0) } }
    }

    private static func rename(principal: String, to name: String, in db: Database) throws -> Int {
        guard principal != name, !principal.isEmpty else { return 0 }
        let arguments: StatementArguments = [principal, name]
        try db.execute(sql: "DELETE FROM unproved WHERE principal = ?", arguments: [principal])
        // A client key used under both names keeps referring to the first operation; the other operation is still sent with it.
        try db.execute(
            sql: """
                UPDATE op SET client_key = NULL WHERE principal = ?1 AND client_key IS NOT NULL
                    AND EXISTS (SELECT 1 FROM op AS first WHERE first.principal = ?2 AND first.client_key = op.client_key)
                """, arguments: arguments)
        var renamed = 0
        // Two statements, because each condition has an index of its own.
        for condition in ["client_key IS NOT NULL", OperationState.isOpen] {
            try db.execute(
                sql: "UPDATE op SET principal = ?2, lane = replace(lane, ' ' || ?1, ' ' || ?2) WHERE principal = ?1 AND \(condition)",
                arguments: arguments)
            renamed += db.changesCount
        }
        return renamed
    }
}
