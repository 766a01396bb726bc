// Dry runs over the stores of a stopped server, opened so that not a byte on the disk changes (docs/storage.md#cleanup).
import FoundationEssentials
import GRDB
import Glibc
package import RockpoolCore

/// Read-only access to the database of a stopped server.
enum StoppedDatabase {
    /// Calls `body` with the database; with nil when there is none yet.
    ///
    /// After a clean stop the file alone is the database and is opened as immutable, so that SQLite creates neither a log nor an index of
    /// it. A log left by a crash belongs to the database; both are copied to a temporary directory first, because reading a log writes
    /// beside it.
    /// - Throws: `DatabaseRefusal`; `OlderSchema` for an older schema, which only a real opening migrates.
    static func read<T>(
        _ path: String, _ identity: DatabaseIdentity, _ body: (DatabaseQueue?) async throws -> T
    ) async throws -> T {
        guard (FileStatus.of(path)?.size ?? 0) > 0 else { return try await body(nil) }
        guard (FileStatus.of(path + "-wal")?.size ?? 0) > 0 else {
            let name = path.utf8.reduce(into: "") { $0 += escaped($1) }
            return try await opened("file:\(name)?immutable=1", identity, body)
        }
        let directory = "\(FileManager.default.temporaryDirectory.path)/rockpool-\(UUID().uuidString)"
        try Paths.makeDirectory(directory)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        for suffix in ["", "-wal"] { try FileManager.default.copyItem(atPath: path + suffix, toPath: "\(directory)/copy\(suffix)") }
        return try await opened("\(directory)/copy", identity, body)
    }

    private static func opened<T>(
        _ name: String, _ identity: DatabaseIdentity, _ body: (DatabaseQueue?) async throws -> T
    ) async throws -> T {
        var configuration = GRDB.Configuration()
        configuration.readonly = true
        let database = try DatabaseQueue(path: name, configuration: configuration)
        let version = try await database.read { db in
            try StoreDatabase.checkIdentity(db, identity)
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

extension CacheStore {
    /// Returns the report that `cleanup` would produce, by the same walk; for a stopped server. Changes nothing.
    package static func lookWhileStopped(
        _ directory: String, _ settings: StorageSettings, _ categories: [Category], _ options: CleanupOptions, _ cleanup: CleanupSettings,
        now: Timestamp
    ) async -> CleanupReport {
        var options = options
        options.dryRun = true
        let run = CleanupRun(options, startedAt: now)
        let lanes = FileLanes(label: "rockpool.look")
        await run.attempt(.cache) {
            let lock = try CacheDirectoryTag.lockToLook(in: directory)
            defer { lock?.release() }
            let size = try await DirectorySize.allocated(directory, on: lanes)
            run.note { ($0.files.cacheBefore, $0.files.cacheAfter) = (size, size) }
            try await StoppedDatabase.read("\(directory)/cache.sqlite", CacheSchema.identity) { database in
                guard let database else { return }
                var entries = EntryCleanup(
                    reader: database, categories: categories, limit: settings.cacheLimit.bytes, settings: cleanup, now: now, deeds: nil)
                let orphans = OrphanCleanup(
                    directory: directory, reader: database, lanes: lanes, deeds: nil, isAwaited: { _ in false }, spools: { [] })
                await entries.clean(orphans, run)
                try await Compaction.look(database, at: directory, spare: settings.cacheLimit.bytes - size, cleanup, run)
            }
        }
        return run.report
    }
}

extension DataStore {
    /// Calls `body` while the store's lock is held, so that no server can open the store; nothing is written to the lock file.
    /// - Throws: `.locked`; the errors of `body`.
    package static func whileStopped<T>(_ directory: String, _ body: () async throws -> T) async throws -> T {
        let lock = try StoreLock.toLook(directory)
        defer { lock?.release() }
        return try await body()
    }

    /// Returns the report that `cleanup` would produce; for a stopped server. Changes nothing.
    package static func lookWhileStopped(
        _ directory: String, _ settings: StorageSettings, _ options: CleanupOptions, _ cleanup: CleanupSettings, now: Timestamp
    ) async -> CleanupReport {
        var options = options
        options.dryRun = true
        let run = CleanupRun(options, startedAt: now)
        let lanes = FileLanes(label: "rockpool.look")
        await run.attempt(.data) {
            let size = try await DirectorySize.allocated(directory, on: lanes)
            run.note { ($0.files.dataBefore, $0.files.dataAfter) = (size, size) }
            try await StoppedDatabase.read("\(directory)/data.sqlite", DataSchema.identity) { database in
                guard let database else { return }
                let look = OutboxLook(reader: database, directory: directory, lanes: lanes)
                await run.attempt(.operations) { try await look.count(Retention(cleanup), now, run) }
                await run.attempt(.blobs) {
                    let count = try await look.orphans { ([], []) }.count
                    run.note { $0.orphans += count }
                }
                let limit = max(settings.dataLimit, minimumLimit).bytes
                try await Compaction.look(database, at: directory, spare: limit - size, cleanup, run)
            }
        }
        return run.report
    }
}

extension Compaction {
    /// Notes the decision that `run` would take.
    fileprivate static func look(
        _ reader: any DatabaseReader, at directory: String, spare: Int64, _ settings: CleanupSettings, _ run: CleanupRun
    ) async throws {
        let pages = try await reader.read { try Pages($0) }
        let decision = Decision(pages.freeing(run.freedRowBytes), at: directory, run.options, settings) { $0 <= spare }
        run.note {
            $0.vacuum = .init(why: decision.why, pagesBefore: pages.count, pagesAfter: pages.count, freePages: pages.free)
        }
    }
}
