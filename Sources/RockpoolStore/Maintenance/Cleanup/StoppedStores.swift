// Dry runs over the stores of a stopped server, opened so that not a byte on the disk changes (docs/storage.md#cleanup).
import FoundationEssentials
import GRDB
import Glibc
package import RockpoolCore

extension CacheStore {
    /// Returns the report that `cleanup` would produce, by the same walk; for a stopped server. Changes nothing.
    package static func lookWhileStopped(
        _ directory: String, settings: StorageSettings, categories: [CacheCategory], options: CleanupOptions,
        cleanup: CleanupSettings, hold: CleanupHold = CleanupHold(), now: Timestamp
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
            try await StoppedDatabase.read("\(directory)/cache.sqlite", identity: CacheSchema.identity) { database in
                guard let database else { return }
                var entries = EntryCleanup(
                    reader: database, categories: categories, limit: settings.cacheLimit.bytes, settings: cleanup, hold: hold, now: now,
                    deeds: nil)
                let orphans = OrphanCleanup(
                    directory: directory, reader: database, lanes: lanes, deeds: nil, isAwaited: { _ in false }, spools: { [] })
                await entries.clean(orphans, run: run)
                try await Compaction.look(database, at: directory, spare: settings.cacheLimit.bytes - size, cleanup, run: run)
            }
            let after = run.foreseen(size, database: "\(directory)/cache.sqlite")
            run.note { $0.files.cacheAfter = after }
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
        _ directory: String, settings: StorageSettings, options: CleanupOptions, cleanup: CleanupSettings, now: Timestamp
    ) async -> CleanupReport {
        var options = options
        options.dryRun = true
        let run = CleanupRun(options, startedAt: now)
        let lanes = FileLanes(label: "rockpool.look")
        await run.attempt(.data) {
            let size = try await DirectorySize.allocated(directory, on: lanes)
            run.note { ($0.files.dataBefore, $0.files.dataAfter) = (size, size) }
            try await StoppedDatabase.read("\(directory)/data.sqlite", identity: DataSchema.identity) { database in
                guard let database else { return }
                let look = OutboxLook(reader: database, directory: directory, lanes: lanes)
                await run.attempt(.operations) { try await look.count(Retention(cleanup), now: now, run: run) }
                await run.attempt(.blobs) {
                    let count = try await look.orphans { ([], []) }.count
                    run.note { $0.orphans += count }
                }
                let limit = max(settings.dataLimit, minimumLimit).bytes
                try await Compaction.look(database, at: directory, spare: limit - size, cleanup, run: run)
            }
            let after = run.foreseen(size, database: "\(directory)/data.sqlite")
            run.note { $0.files.dataAfter = after }
        }
        return run.report
    }
}

extension Compaction {
    /// Notes the decision that `run` would take.
    fileprivate static func look(
        _ reader: any DatabaseReader, at directory: String, spare: Int64, _ settings: CleanupSettings, run: CleanupRun
    ) async throws {
        let pages = try await reader.read { try Pages($0) }
        let freed = pages.freeing(run.freedRowBytes)
        let decision = Decision(freed, at: directory, run.options, settings) { $0 <= spare }
        run.note {
            $0.vacuum = .init(why: decision.why, pagesBefore: pages.count, pagesAfter: freed.used, freePages: pages.free)
        }
    }
}
