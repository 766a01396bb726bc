// Cleanup of the data store: what was delivered long ago, what is dead and blocks nobody, blobs without rows (storage.md §6).
import FoundationEssentials
import GRDB
package import RockpoolCore
import Synchronization

extension DataStore {
    /// How long delivered operations stay, for the monitor and for keys used again (outbox.md §1.1).
    package static let deliveredFor = TimeSpan.days(7)

    private static let batchRows = 200

    /// Runs the steps for the data store. What is pending is never touched. A dry run takes the same decisions.
    /// - Throws: only when the database cannot be read; what else fails is in the report's `errors`.
    package func cleanup(_ options: CleanupOptions, settings: CleanupSettings, now: Timestamp) async throws -> CleanupReport {
        let began = ContinuousClock.now
        var report = CleanupReport(options, startedAt: now)
        report.files.dataBefore = DirectorySize.allocated(directory)
        let (ended, total) = try await database.pool.read { db in
            (try Self.ended(db, settings, now), try Int.fetchOne(db, sql: "SELECT count(*) FROM op") ?? 0)
        }
        report.operations.purged = ended.count
        report.operations.kept = total - ended.count
        do {
            if !options.dryRun {
                report.operations.purged = try await purge(ended.map(\.sequence), settings, now)
                report.operations.kept = total - report.operations.purged
                try await trimLog(before: now - settings.failedAfter)
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

    /// Operations past their keeping. A dead one stays while anything later in its lane waits: a purge must not let that go unseen.
    private static let ended = """
        (state IN (\(OperationRow.endedStates)) AND ended_at < ?1) OR (state = 'dead' AND ended_at < ?2 AND NOT EXISTS (
            SELECT 1 FROM op AS later WHERE later.lane = op.lane AND later.seq > op.seq
                AND later.state NOT IN (\(OperationRow.endedStates))))
        """

    private static func moments(_ settings: CleanupSettings, _ now: Timestamp) -> StatementArguments {
        [(now - deliveredFor).milliseconds, (now - settings.failedAfter).milliseconds]
    }

    private static func ended(
        _ db: Database, _ settings: CleanupSettings, _ now: Timestamp
    ) throws -> [(sequence: Int64, bytes: Int64)] {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT seq, length(headers) + coalesce(length(body), 0) + coalesce(length(resp_body), 0) FROM op
                WHERE \(ended) ORDER BY seq
                """, arguments: moments(settings, now))
        return try rows.map { row in
            var columns = RowReader(row)
            return (try columns.next(), try columns.next())
        }
    }

    /// Asks again of each row as it goes: a person may have revived it since it was listed.
    /// - Returns: how many went.
    private func purge(_ sequences: [Int64], _ settings: CleanupSettings, _ now: Timestamp) async throws -> Int {
        var rest = sequences[...]
        var purged = 0
        while !rest.isEmpty {
            let batch = rest.prefix(Self.batchRows)
            rest = rest.dropFirst(batch.count)
            let (count, unused) = try await queue.commit { db in
                let statement = try db.cachedStatement(sql: "DELETE FROM op WHERE (\(Self.ended)) AND seq = ?3")
                var count = 0
                for sequence in batch {
                    try statement.execute(arguments: Self.moments(settings, now) + [sequence])
                    count += db.changesCount
                }
                return (count, try Data.fetchAll(db, sql: "DELETE FROM blob WHERE refs = 0 RETURNING sha").map { Digest.hex($0) })
            }
            purged += count
            try await removeUnnamed(unused)
        }
        return purged
    }

    /// Lines about operations that are gone go as well, in time: a log that only grew would fill the outbox in the end.
    private func trimLog(before moment: Timestamp) async throws {
        var trimmed = 0
        repeat {
            trimmed = try await queue.commit { db in
                try db.execute(
                    sql: """
                        DELETE FROM sync_log WHERE n IN (
                            SELECT n FROM sync_log WHERE at < ? AND NOT EXISTS (SELECT 1 FROM op WHERE op.seq = sync_log.seq) LIMIT 1000)
                        """, arguments: [moment.milliseconds])
                return db.changesCount
            }
        } while trimmed > 0
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
