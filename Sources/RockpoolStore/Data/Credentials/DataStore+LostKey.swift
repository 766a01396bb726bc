// Queued writes whose owners were named under another `install-key`: no client is known as one of them (docs/storage.md#directories).
import Crypto
import GRDB
import Logging
import RockpoolCore

extension DataStore {
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
}
