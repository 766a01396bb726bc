// Which credentials the upstream has accepted, and whose they are; an identity's operations follow it to its new name
// (design §5 *Identity*, outbox.md §1.10).
import FoundationEssentials
import GRDB
package import RockpoolCore

/// A credential that the upstream has accepted, by its name (an HMAC, see `identityName`), and whose it is.
package struct ProvedCredential: Hashable, Sendable {
    package var name: String
    package var principal: String
    /// When it was last known to be accepted.
    package var at: Timestamp

    package init(name: String, principal: String, at: Timestamp) {
        self.name = name
        self.principal = principal
        self.at = at
    }
}

extension DataStore {
    /// How many proved credentials are kept; the oldest go.
    package static let provedLimit = 10_000

    /// Those that are kept, the oldest first. Blocks: for the start only.
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

    /// Keeps a proof, and makes the operations taken under the credential's own name those of its principal, in one commit.
    /// - Returns: how many operations changed hands.
    /// - Throws: `.full`, `.unavailable`.
    @discardableResult
    package func keep(_ proved: ProvedCredential) async throws -> Int {
        guard let token = Digest.bytes(proved.name) else { return 0 }
        return try await translated {
            try await queue.commit { db in
                try db.execute(
                    sql: """
                        INSERT INTO proved (token, principal, at) VALUES (?1, ?2, ?3)
                        ON CONFLICT (token) DO UPDATE SET principal = ?2, at = ?3
                        """, arguments: [token.data, proved.principal, proved.at.milliseconds])
                try db.execute(
                    sql: "DELETE FROM proved WHERE token IN (SELECT token FROM proved ORDER BY at DESC LIMIT -1 OFFSET ?)",
                    arguments: [Self.provedLimit])
                return try Self.rename(principal: proved.name, to: proved.principal, db)
            }
        }
    }

    /// Gives a principal's open operations, and those its client may name by a key again, another name, in their lanes' names too.
    /// - Returns: how many there were.
    /// - Throws: `.full`, `.unavailable`.
    @discardableResult
    package func rename(principal: String, to name: String) async throws -> Int {
        try await translated { try await queue.commit { try Self.rename(principal: principal, to: name, $0) } }
    }

    private static func rename(principal: String, to name: String, _ db: Database) throws -> Int {
        guard principal != name, !principal.isEmpty else { return 0 }
        let arguments: StatementArguments = [principal, name]
        try db.execute(sql: "DELETE FROM unproved WHERE principal = ?", arguments: [principal])
        // A key that both have used keeps standing for the first operation; the other is sent with it all the same.
        try db.execute(
            sql: """
                UPDATE op SET client_key = NULL WHERE principal = ?1 AND client_key IS NOT NULL
                    AND EXISTS (SELECT 1 FROM op AS first WHERE first.principal = ?2 AND first.client_key = op.client_key)
                """, arguments: arguments)
        var renamed = 0
        // Two conditions, an index each.
        for condition in ["client_key IS NOT NULL", "state NOT IN (\(OperationRow.endedStates))"] {
            try db.execute(
                sql: "UPDATE op SET principal = ?2, lane = replace(lane, ' ' || ?1, ' ' || ?2) WHERE principal = ?1 AND \(condition)",
                arguments: arguments)
            renamed += db.changesCount
        }
        return renamed
    }
}
