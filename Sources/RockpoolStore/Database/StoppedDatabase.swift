// Reads a stopped server's database without changing a byte on the disk (docs/storage.md#cleanup).
import FoundationEssentials
import GRDB
import RockpoolCore

/// Read-only access to the database of a stopped server.
enum StoppedDatabase {
    /// Calls `body` with the database; with nil when there is none yet.
    ///
    /// After a clean stop the file alone is the database and is opened as immutable, so that SQLite creates neither a log nor an index of
    /// it. A log left by a crash belongs to the database; both are copied to a temporary directory first, because reading a log writes
    /// beside it.
    /// - Throws: `DatabaseRefusal`; `OlderSchema` for an older schema, which only a real opening migrates.
    static func read<T>(
        _ path: String, identity: DatabaseIdentity, _ body: (DatabaseQueue?) async throws -> T
    ) async throws -> T {
        guard (FileStatus.of(path)?.size ?? 0) > 0 else { return try await body(nil) }
        guard (FileStatus.of(path + "-wal")?.size ?? 0) > 0 else {
            let name = path.utf8.reduce(into: "") { $0 += escaped($1) }
            return try await opened("file:\(name)?immutable=1", identity: identity, body)
        }
        let directory = "\(FileManager.default.temporaryDirectory.path)/rockpool-\(UUID().uuidString)"
        try Paths.makeDirectory(directory)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        for suffix in ["", "-wal"] { try FileManager.default.copyItem(atPath: path + suffix, toPath: "\(directory)/copy\(suffix)") }
        return try await opened("\(directory)/copy", identity: identity, body)
    }

    private static func opened<T>(
        _ name: String, identity: DatabaseIdentity, _ body: (DatabaseQueue?) async throws -> T
    ) async throws -> T {
        var configuration = GRDB.Configuration()
        configuration.readonly = true
        let database = try DatabaseQueue(path: name, configuration: configuration)
        let version = try await database.read { db in
            try StoreDatabase.checkIdentity(in: db, identity)
            return try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
        }
        guard version == identity.migrations.count else { throw OlderSchema(found: version, known: identity.migrations.count) }
        return try await body(database)
    }

    /// Escapes a byte for a URI: `?`, `#` and `%` would end or change the name.
    private static func escaped(_ byte: UInt8) -> String {
        let isPlain = byte > 0x20 && byte < 0x7F && !"?#%".utf8.contains(byte)
        return isPlain ? String(UnicodeScalar(byte)) : "%" + Digest.hex([byte])
    }
}

/// Thrown for a schema of an earlier version.
struct OlderSchema: Error, CustomStringConvertible {
    var found: Int
    var known: Int
    var description: String { "schema \(found), this version has \(known): opening it for real brings it up to date" }
}

/// The integrity check of a database's pages on a read-only connection (sqlite.org/pragma.html#pragma_quick_check).
enum PageCheck {
    /// Returns at most 20 problems; none when the pages are sound.
    /// - Parameter byTable: true checks one table per read, so that no snapshot blocks a checkpoint for long; this skips the list of free
    ///   pages.
    /// - Throws: `DatabaseError` for any error but damage.
    static func problems(_ reader: any DatabaseReader, byTable: Bool) async throws -> [String] {
        do {
            guard byTable else { return try await reader.read { try ask(in: $0, "PRAGMA quick_check(20)") } }
            let tables = try await reader.read { try String.fetchAll($0, sql: "SELECT name FROM sqlite_master WHERE type = 'table'") }
            var found: [String] = []
            for table in ["sqlite_schema"] + tables where found.count < 20 {
                found += try await reader.read { try ask(in: $0, "PRAGMA quick_check('\(table)')") }
            }
            return Array(found.prefix(20))
        } catch let error as DatabaseError where error.saysCorrupt {
            return [error.message ?? "\(error.resultCode)"]
        }
    }

    private static func ask(in db: Database, _ question: String) throws -> [String] {
        try String.fetchAll(db, sql: question).filter { try $0 != "ok" && !isMistaken($0, in: db) }
    }

    /// True for `NULL value in TABLE.column` of a sound table: the quick check of SQLite before 3.41 confuses the columns of a table WITHOUT ROWID
    /// where its key has another order, and the full one does not.
    private static func isMistaken(_ problem: String, in db: Database) throws -> Bool {
        let start = "NULL value in "
        guard problem.hasPrefix(start), let table = problem.dropFirst(start.count).split(separator: ".").first,
            table.allSatisfy({ $0.isASCII && ($0.isLetter || $0 == "_") })
        else { return false }
        return try String.fetchAll(db, sql: "PRAGMA integrity_check('\(table)')") == ["ok"]
    }
}
