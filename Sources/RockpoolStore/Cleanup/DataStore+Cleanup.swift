// Cleanup of the data store: what was delivered long ago, what is dead and blocks nobody, blobs without rows (storage.md §6).
import FoundationEssentials
import GRDB
package import RockpoolCore
import Synchronization

extension DataStore {
    /// Runs the steps for the data store. What is pending is never touched. A dry run takes the same decisions.
    /// - Throws: only when the database cannot be read; what else fails is in the report's `errors`.
    package func cleanup(_ options: CleanupOptions, settings: CleanupSettings, now: Timestamp) async throws -> CleanupReport {
        let began = ContinuousClock.now
        var report = CleanupReport(options, startedAt: now)
        report.files.dataBefore = DirectorySize.allocated(directory)
        let retention = Retention(failed: settings.failedAfter)
        let (ended, total) = try await database.pool.read { db in
            (try Self.ended(db, retention, now), try Int.fetchOne(db, sql: "SELECT count(*) FROM op") ?? 0)
        }
        report.operations.purged = ended.count
        report.operations.kept = total - ended.count
        do {
            report.operations.warned = try await announcePurges(retention, dryRun: options.dryRun, now: now)
            if !options.dryRun {
                report.operations.purged = try await purge(ended.map(\.sequence), retention, now: now)
                report.operations.kept = total - report.operations.purged
                try await trimLog(before: now - settings.failedAfter)
                try await trimAttempts()
                try await trimSealed(now: now)
            }
            let strays = try await orphans()
            report.orphans = strays.blobs.count + strays.temporaries.count
            if !options.dryRun {
                try await removeUnnamed(strays.blobs)
                try await lanes.run(0) { for path in strays.temporaries { Paths.remove(path) } }
            }
            let spare = footprint.ledger.limit - footprint.ledger.used - footprint.ledger.reserved
            report.vacuum = try await Compaction(database: database, queue: queue, spare: spare)
                .run(options, settings, freed: ended.reduce(0) { $0 + $1.bytes })
            if !options.dryRun { reserve.fill(minFree: self.settings.minFree.bytes) }
        } catch {
            report.errors.append("data: \(error)")
        }
        report.files.dataAfter = DirectorySize.allocated(directory)
        report.seconds = (ContinuousClock.now - began) / .seconds(1)
        return report
    }

    /// Files of `blobs/` that no operation names and no writer holds, and temporaries nobody writes. Listed before the rows are read.
    private func orphans() async throws -> (blobs: [String], temporaries: [String]) {
        let root = "\(directory)/blobs"
        let (names, temporaries) = try await lanes.run(0) { (Paths.names(in: root), Paths.names(in: "\(root)/tmp")) }
        let named = try await database.pool.read { db in
            Set(try Data.fetchAll(db, sql: "SELECT sha FROM blob").map { Digest.hex($0) })
        }
        let (spools, unattached) = held.withLock { ($0.spools, Set($0.unattached.keys)) }
        return (
            names.filter { $0 != "tmp" && !named.contains($0) && !unattached.contains($0) },
            temporaries.filter { !spools.contains($0) }.map { "\(root)/tmp/\($0)" }
        )
    }

    /// Unlinks blobs that still have no name. Decided and done on the writer's thread, where a row could come to name one, and
    /// under the lock that a writer takes before it gives one its name.
    func removeUnnamed(_ names: [String]) async throws {
        guard !names.isEmpty else { return }
        try await queue.outside { db in
            for name in names {
                try self.held.withLock { held in
                    let isNamed = try Bool.fetchOne(
                        db, sql: "SELECT EXISTS (SELECT 1 FROM blob WHERE sha = ?)", arguments: [(Digest.bytes(name) ?? []).data])
                    guard held.unattached[name] == nil, isNamed != true else { return }
                    let allocated = FileStatus.of(self.blobPath(name))?.allocated ?? 0
                    if Paths.remove(self.blobPath(name)) { self.footprint.addFiles(-allocated) }
                }
            }
        }
    }
}
