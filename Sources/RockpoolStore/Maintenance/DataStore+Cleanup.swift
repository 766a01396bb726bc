// Cleanup of the data store: operations past their retention, expired credentials, blobs without rows (docs/storage.md#cleanup).
import FoundationEssentials
import GRDB
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
}
