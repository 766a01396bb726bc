// Cleanup of the data store: operations past their retention, expired credentials, blobs without rows (docs/storage.md#cleanup).
import FoundationEssentials
import GRDB
import Glibc
package import RockpoolCore
import Synchronization

extension DataStore {
    /// Runs the cleanup steps of the data store. An operation that may still be sent automatically, now or later, is never removed. A dry
    /// run takes the same decisions. Errors are in the report's `errors`.
    /// - Parameter noteGone: called with the removed operations that were still open, in their last state.
    package func cleanup(
        _ options: CleanupOptions, settings: CleanupSettings, now: Timestamp, pausesExpiry: Bool = false,
        watch: @escaping CleanupWatch = { _ in }, noteGone: @Sendable ([QueuedWrite]) -> Void = { _ in }
    ) async -> CleanupReport {
        let run = CleanupRun(options, startedAt: now, pausesExpiry: pausesExpiry, watch: watch)
        let retention = Retention(settings)
        await run.attempt(.data) {
            let before = try await DirectorySize.allocated(directory, on: lanes)
            run.note { $0.files.dataBefore = before }
        }
        let look = OutboxLook(reader: database.pool, directory: directory, lanes: lanes)
        if !pausesExpiry, isFirstNode {
            await run.attempt(.operations) { try await takeEnded(look, retention: retention, now: now, run: run, noteGone: noteGone) }
        }
        if !options.dryRun, !pausesExpiry, isFirstNode {
            await run.attempt(.log) { try await trimLog(before: now - settings.failedAfter) }
            await run.attempt(.attempts) { try await trimAttempts() }
            await run.attempt(.credentials) { try await trimSealed(now: now) }
        }
        await run.attempt(.blobs) { try await takeOrphans(look, run: run) }
        // Before the compaction, which leaves an empty log.
        if !options.dryRun { await run.attempt(.lastCleanup) { try await noteCleanup(now) } }
        await run.attempt(.dataCompaction) {
            let report = try await Compaction(database: database, queue: queue, footprint: footprint, pace: nil).run(
                options, settings, freed: run.freedRowBytes)
            run.note { $0.vacuum = report }
        }
        await run.attempt(.dataAfter) {
            if !options.dryRun { try await lanes.run(1) { self.reserve.fill(minFree: self.settings.minFree.bytes) } }
            let after = try await DirectorySize.allocated(directory, on: lanes)
            let shown = options.dryRun ? run.foreseen(after, database: database.path) : after
            run.note { $0.files.dataAfter = shown }
        }
        return run.report
    }

    private func takeEnded(
        _ look: OutboxLook, retention: Retention, now: Timestamp, run: CleanupRun, noteGone: ([QueuedWrite]) -> Void
    ) async throws {
        if run.options.dryRun { return try await look.count(retention, now: now, run: run) }
        let (ended, total, waiting, _) = try await look.operations(retention, now: now)
        run.note { ($0.operations.kept, $0.operations.waiting) = (total, waiting) }
        // Before the purge: no operation is purged unannounced.
        let warned = try await announcePurges(retention, now: now)
        run.note { $0.operations.warned = warned }
        try await purge(ended.map(\.sequence), retention: retention, now: now) { count, stillOpen in
            run.note { report in
                report.operations.purged += count
                report.operations.kept -= count
            }
            noteGone(stillOpen)
        }
    }

    private func noteCleanup(_ now: Timestamp) async throws {
        // `translated` updates the health state, so that a recovered disk is detected without a client's write.
        try await translated {
            try await queue.commit(scope: .own) { db in
                try db.execute(
                    sql: "INSERT INTO total VALUES ('last_cleanup', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                    arguments: [now.milliseconds])
            }
        }
    }

    /// Returns the time of the last real cleanup, by any process; nil when there was none, or when it cannot be read.
    package func lastCleanup() async -> Timestamp? {
        let found = try? await database.pool.read { try Int64.fetchOne($0, sql: "SELECT value FROM total WHERE name = 'last_cleanup'") }
        return found.map { Timestamp(milliseconds: $0) }
    }

    private func takeOrphans(_ look: OutboxLook, run: CleanupRun) async throws {
        let strays = try await look.orphans { self.held.withLock { ($0.spools, Set($0.unattached.keys)) } }
        guard !run.options.dryRun else { return run.note { $0.orphans += strays.count } }
        let blobs = try await removeUnnamed(strays.blobs)
        let temporaries = try await lanes.run(0) { strays.temporaries.count { Paths.remove($0) } }
        run.note { $0.orphans += blobs + temporaries }
    }

    /// Unlinks blobs that no row references. The check and the unlink run on the writer's thread, the only one that adds such rows, and
    /// under the lock that a writer takes before it names a blob.
    /// - Returns: the number of removed blobs.
    @discardableResult
    func removeUnnamed(_ names: [String]) async throws -> Int {
        guard !names.isEmpty else { return 0 }
        return try await queue.outside { db in
            try names.count { name in
                try self.held.withLock { held in
                    let isNamed = try Bool.fetchOne(
                        db, sql: "SELECT EXISTS (SELECT 1 FROM blob WHERE sha = ?)", arguments: [(Digest.bytes(name) ?? []).data])
                    guard held.unattached[name] == nil, isNamed == false else { return false }
                    let allocated = FileStatus.of(self.blobPath(name))?.allocated ?? 0
                    guard Paths.remove(self.blobPath(name)) else { return false }
                    self.footprint.addFiles(-allocated)
                    return true
                }
            }
        }
    }

    // MARK: - Dry runs
    // Dry runs over the stores of a stopped server, opened so that not a byte on the disk changes (docs/storage.md#cleanup).

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

/// Finds the removable data of a data store, running or stopped; changes nothing.
struct OutboxLook: Sendable {
    let reader: any DatabaseReader
    let directory: String
    let lanes: FileLanes

    struct Orphans: Sendable {
        /// Names in `blobs/` that no operation references and no writer holds.
        var blobs: [String]
        /// Paths of temporaries without a writer.
        var temporaries: [String]
        var count: Int { blobs.count + temporaries.count }
    }

    /// Returns the operations past their retention, the number of all operations, that of the other ones that wait, and the number of purges
    /// to announce.
    func operations(
        _ retention: Retention, now: Timestamp
    ) async throws -> (ended: [(sequence: Int64, bytes: Int64)], total: Int, waiting: Int, due: Int) {
        try await reader.read { db in
            let ended = try DataStore.ended(in: db, retention: retention, now: now)
            let gone = Set(ended.map(\.sequence))
            let waiting = try Int64.fetchAll(db, sql: "SELECT seq FROM op WHERE \(OperationState.isOpen) AND state <> 'dead'")
            return (
                ended, try Int.fetchOne(db, sql: "SELECT count(*) FROM op") ?? 0, waiting.count { !gone.contains($0) },
                try DataStore.purgesToAnnounce(in: db, retention: retention, now: now)
            )
        }
    }

    /// Adds the same numbers to the report of a dry run.
    func count(_ retention: Retention, now: Timestamp, run: CleanupRun) async throws {
        let (ended, total, waiting, due) = try await operations(retention, now: now)
        run.note { $0.operations = .init(purged: ended.count, kept: total - ended.count, waiting: waiting, warned: due) }
        run.freeRows(ended.reduce(0) { $0 + $1.bytes })
    }

    /// Lists the files of `blobs/` before reading the rows, and before calling `held` for the temporaries and blobs of writers.
    func orphans(held: @Sendable () -> (spools: Set<String>, unattached: Set<String>)) async throws -> Orphans {
        let root = "\(directory)/blobs"
        let (names, temporaries) = try await lanes.run(0) {
            (Paths.names(in: root).filter { Digest.bytes($0) != nil }, Paths.names(in: "\(root)/tmp"))
        }
        let named = try await reader.read { db in Set(try Data.fetchAll(db, sql: "SELECT sha FROM blob").map { Digest.hex($0) }) }
        let (spools, unattached) = held()
        return Orphans(
            blobs: names.filter { !named.contains($0) && !unattached.contains($0) },
            temporaries: temporaries.filter { !spools.contains($0) }.map { "\(root)/tmp/\($0)" })
    }
}

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
