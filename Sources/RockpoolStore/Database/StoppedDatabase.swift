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
