// Credentials accepted by the upstream and their principals; the operations of an identity follow it to its new name
// (docs/caching.md#partitions *Identity*, docs/outbox.md#credentials).
import Crypto
import FoundationEssentials
import GRDB
import Logging
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

    // MARK: - A lost key
    // Queued writes whose owners were named under another `install-key`: no client is known as one of them (docs/storage.md#directories).

    private static let keyMark = "install-key "

    /// The name of a key, which tells nothing about it.
    static func mark(of key: [UInt8]) -> String {
        Digest.hex(SHA256.hash(data: Array("rockpool install key".utf8) + key).prefix(8))
    }

    /// Notes the key in use, and since when.
    /// - Parameter isNew: true if the key was made just now.
    /// - Returns: the number of open writes whose owners this key cannot name.
    static func noteKey(_ key: [UInt8], isNew: Bool, in db: Database, now: Timestamp) throws -> Int {
        let mark = keyMark + mark(of: key)
        let known = try marks(in: db)
        let since = known[mark] ?? (known.isEmpty && !isNew ? 0 : now.milliseconds)
        let count = try ownedWrites(before: since, in: db)
        if count == 0 { try db.execute(sql: "DELETE FROM total WHERE name LIKE ?", arguments: ["\(keyMark)%"]) }
        // The mark of the former key stays for as long as that key may come back.
        try db.execute(
            sql: "INSERT INTO total (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING", arguments: [mark, count == 0 ? 0 : since])
        return count
    }

    /// Returns the number of open writes in a state directory whose owners were named under an earlier key, as the last start has found it.
    /// - Parameter isRunning: true if a server has the directory.
    /// - Throws: `DatabaseError`, `DatabaseRefusal`, `OlderSchema`.
    package static func writesOfLostOwners(in directory: String, isRunning: Bool) async throws -> Int {
        let path = "\(directory)/data.sqlite"
        let count = { @Sendable (db: Database) in try ownedWrites(before: marks(in: db).values.max() ?? 0, in: db) }
        guard isRunning else {
            return try await StoppedDatabase.read(path, identity: DataSchema.identity) { try await $0?.read(count) ?? 0 }
        }
        var configuration = GRDB.Configuration()
        configuration.readonly = true
        return try await DatabaseQueue(path: path, configuration: configuration).read(count)
    }

    /// Warns of writes whose owners are lost.
    static func warn(ofLostOwners count: Int, in directory: String, logger: Logger) {
        guard count > 0 else { return }
        logger.warning(
            "install-key is new: the owners of queued writes are not known, and the writes wait for ever; restore the former file and restart",
            metadata: ["file": "\(directory)/install-key", "writes": "\(count)"])
    }

    private static func marks(in db: Database) throws -> [String: Int64] {
        let rows = try Row.fetchAll(db, sql: "SELECT name, value FROM total WHERE name LIKE ?", arguments: ["\(keyMark)%"])
        return Dictionary(
            try rows.map { row in
                var columns = RowReader(row)
                return (try columns.next(), try columns.next())
            }
        ) { first, _ in first }
    }

    private static func ownedWrites(before moment: Int64, in db: Database) throws -> Int {
        guard moment > 0 else { return 0 }
        return try Int.fetchOne(
            db, sql: "SELECT count(*) FROM op WHERE principal <> '' AND accepted_at < ? AND \(OperationState.isOpen)",
            arguments: [moment]) ?? 0
    }

    // MARK: - Forgetting
    // What the outbox database holds of an identity besides its writes, and its removal (docs/outbox.md#forgotten).

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

/// The writes of one principal at one upstream that have not ended.
package struct WaitingWrites: Hashable, Sendable {
    package var principal: String
    /// Name of the upstream.
    package var upstream: String
    package var count: Int
}
