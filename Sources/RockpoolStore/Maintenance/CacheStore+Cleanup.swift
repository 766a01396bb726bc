// Cleanup of the cache: expired entries, assets over their share, orphans, pages, log; each step fails alone (docs/storage.md#cleanup).
import GRDB
import Logging
package import RockpoolCore
import Synchronization

extension CacheStore {
    /// Runs the cleanup steps of the cache. A dry run takes the same decisions and stops before each change; both write the recency kept in
    /// memory into the rows, as any eviction does. Errors are in the report's `errors`.
    package func cleanup(
        _ options: CleanupOptions, settings: CleanupSettings, hold: CleanupHold = CleanupHold(), now: Timestamp,
        watch: @escaping CleanupWatch = { _ in }
    ) async -> CleanupReport {
        let run = CleanupRun(options, startedAt: now, pausesExpiry: pausesExpiry, watch: watch)
        await sweep.withLock(\.self)?.value
        await run.attempt(.cache) {
            let before = try await DirectorySize.allocated(directory, on: lanes)
            run.note { $0.files.cacheBefore = before }
        }
        await run.attempt(.recency) { try await writeBackRecency() }
        var entries = EntryCleanup(
            reader: database.pool, categories: categories, limit: self.settings.cacheLimit.bytes, settings: settings, hold: hold, now: now,
            deeds: options.dryRun ? nil : deeds)
        let bodies = bodies
        let orphans = OrphanCleanup(
            directory: directory, reader: database.pool, lanes: lanes, deeds: entries.deeds, isAwaited: { bodies.isAwaited($0) },
            spools: { self.spools })
        await entries.clean(orphans, run: run)
        await run.attempt(.compaction) {
            let report = try await Compaction(database: database, queue: queue, footprint: footprint, pace: pace).run(
                options, settings, freed: run.freedRowBytes)
            run.note { $0.vacuum = report }
        }
        if !options.dryRun { await run.attempt(.audit) { try await auditWhenDue(now: now) } }
        await run.attempt(.cacheAfter) {
            let after = try await DirectorySize.allocated(directory, on: lanes)
            let shown = options.dryRun ? run.foreseen(after, database: database.path) : after
            run.note { $0.files.cacheAfter = shown }
        }
        return run.report
    }

    /// The changes that a cleanup makes.
    var deeds: CleanupDeeds {
        CleanupDeeds(
            remove: { [self] rows, condition in
                var gone: [EvictionCandidate] = []
                try await inTurns(rows) { batch in
                    gone += try await take(dryRun: false, as: .cleanedUp) { db in
                        try batch.flatMap { row in
                            try EvictionCandidate.fetch(
                                in: db, where: "id = ? AND \(condition.sql)", arguments: [row.id] + condition.arguments, limit: 1)
                        }
                    }
                }
                return gone
            },
            removeLost: { [self] hash in
                var count = 0
                while true {
                    let most = await pace.next().rows(of: batchRows)
                    let rows = try await take(dryRun: false, as: .cleanedUp) { db in
                        guard FileStatus.of(self.bodies.path(of: hash)) == nil else { return [] }
                        return try EvictionCandidate.fetch(
                            in: db, where: "in_file = 1 AND body_sha = ?", arguments: [hash.data], limit: most)
                    }
                    if rows.isEmpty { return count }
                    count += rows.count
                }
            },
            unlink: { [self] in try await unlinkOrphans($0) })
    }

    private func unlinkOrphans(_ hashes: [[UInt8]]) async throws -> Int {
        var count = 0
        try await inTurns(hashes) { batch in count += try await queue.outside { self.bodies.removeUnnamed(Array(batch), in: $0) } }
        return count
    }

    /// Runs `body` on batches of the size that the cache's pace allows.
    private func inTurns<Element: Sendable>(_ all: [Element], _ body: (ArraySlice<Element>) async throws -> Void) async throws {
        var rest = all[...]
        while !rest.isEmpty {
            let batch = rest.prefix(await pace.next().rows(of: batchRows))
            rest = rest.dropFirst(batch.count)
            try await body(batch)
        }
    }

    /// Number of files removed when the cache was opened: temporaries, and bodies without a row. Final once the sweep has ended.
    package var tidied: Int { counters.withLock(\.tidied) }

    /// Removes files left by a crash between rename and commit, a directory at a time. Nothing is stored until it has ended.
    func sweepInBackground() {
        let task = Task { [self] in
            let shards = BodyShards(root: bodies.root)
            var removed = 0
            do {
                for shard in UInt8.min...UInt8.max {
                    try Task.checkCancellation()
                    let found = try await lanes.run(1) { try shards.difference(in: shard, reader: self.database.pool) }
                    removed += try await unlinkOrphans(found.unnamed)
                }
            } catch is CancellationError {
                // The store is closing: the next start sweeps again.
                return
            } catch {
                logger.warning("bodies without an entry could not all be removed", metadata: ["error": "\(error)"])
            }
            counters.withLock { counters in
                counters.isSweeping = false
                counters.tidied += removed
            }
            if removed > 0 { logger.info("bodies without an entry removed", metadata: ["bodies": "\(removed)"]) }
        }
        sweep.withLock { $0 = task }
    }
}

/// Removal of leftovers of a crash: files without rows, rows without files, temporaries without a writer (docs/storage.md#cleanup step 4).
/// Compares the directory of a cache with its rows, a shard at a time.
struct OrphanCleanup: Sendable {
    let directory: String
    let reader: any DatabaseReader
    let lanes: FileLanes
    /// nil in a dry run.
    let deeds: CleanupDeeds?
    /// Returns true if a body's file is about to be unlinked or to get its row.
    let isAwaited: @Sendable ([UInt8]) -> Bool
    /// Names in `tmp/` that a writer owns.
    let spools: @Sendable () -> Set<String>

    func take(_ entries: inout EntryCleanup, run: CleanupRun) async throws {
        let shards = BodyShards(root: "\(directory)/bodies")
        let reader = reader
        let foreign = try await lanes.run(1) { shards.foreign() }
        run.note { $0.foreign += foreign.count }
        for shard in UInt8.min...UInt8.max {
            let found = try await lanes.run(1) { try shards.difference(in: shard, reader: reader) }
            let unnamed = found.unnamed.filter { !isAwaited($0) }
            let count = try await deeds?.unlink(unnamed) ?? unnamed.count
            if deeds == nil {
                let place = "\(directory)/bodies/\(Digest.hex([shard]))"
                run.freeFiles(
                    try await lanes.run(1) {
                        unnamed.reduce(0) { $0 + (FileStatus.of("\(place)/\(Digest.hex($1))")?.allocated ?? 0) }
                    })
            }
            run.note { report in
                report.orphans += count
                report.foreign += found.foreign.count
            }
            try await entries.takeLost(found.missing, run: run)
        }
    }

    func takeTemporaries(_ run: CleanupRun) async throws {
        let (path, spools, isDryRun) = ("\(directory)/tmp", spools, deeds == nil)
        let (count, bytes) = try await lanes.run(1) {
            // The files are listed before `spools` is read: a writer registers its name before it creates its file.
            Paths.names(in: path).reduce(into: (0, Int64(0))) { sum, name in
                let bytes = FileStatus.of("\(path)/\(name)")?.allocated ?? 0
                guard !spools().contains(name), isDryRun || Paths.remove("\(path)/\(name)") else { return }
                sum = (sum.0 + 1, sum.1 + bytes)
            }
        }
        run.note { $0.orphans += count }
        if isDryRun { run.freeFiles(bytes) }
    }
}
