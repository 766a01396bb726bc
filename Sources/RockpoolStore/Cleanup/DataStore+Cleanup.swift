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
                try await purge(ended.map(\.sequence))
                try await trimLog(before: now - settings.failedAfter)
            }
            let strays = try await orphans()
            report.orphans = strays.count
            if !options.dryRun { try await remove(strays) }
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
    private static func ended(
        _ db: Database, _ settings: CleanupSettings, _ now: Timestamp
    ) throws -> [(sequence: Int64, bytes: Int64)] {
        let open = OperationState.allCases.filter { !$0.hasEnded }.map { "'\($0.rawValue)'" }.joined(separator: ", ")
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT seq, length(headers) + coalesce(length(body), 0) + coalesce(length(resp_body), 0) FROM op
                WHERE (state IN ('delivered', 'cancelled', 'superseded') AND ended_at < ?1)
                    OR (state = 'dead' AND ended_at < ?2 AND NOT EXISTS (
                        SELECT 1 FROM op AS later WHERE later.lane = op.lane AND later.seq > op.seq AND later.state IN (\(open))))
                ORDER BY seq
                """, arguments: [(now - deliveredFor).milliseconds, (now - settings.failedAfter).milliseconds])
        return try rows.map { row in
            var columns = RowReader(row)
            return (try columns.next(), try columns.next())
        }
    }

    private func purge(_ sequences: [Int64]) async throws {
        var rest = sequences[...]
        while !rest.isEmpty {
            let batch = rest.prefix(Self.batchRows)
            rest = rest.dropFirst(batch.count)
            let unused = try await queue.commit { db in
                let statement = try db.cachedStatement(sql: "DELETE FROM op WHERE seq = ?")
                for sequence in batch { try statement.execute(arguments: [sequence]) }
                return try Data.fetchAll(db, sql: "DELETE FROM blob WHERE refs = 0 RETURNING sha").map { Digest.hex($0) }
            }
            try await remove(unused.map(blobPath).filter { !isUnattached($0) })
        }
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

    /// Files of `blobs/` that no operation names and no writer holds. Listed before the rows are read.
    private func orphans() async throws -> [String] {
        let root = "\(directory)/blobs"
        let (names, temporaries) = try await lanes.run(0) { (Paths.names(in: root), Paths.names(in: "\(root)/tmp")) }
        let named = try await database.pool.read { db in
            Set(try Data.fetchAll(db, sql: "SELECT sha FROM blob").map { Digest.hex($0) })
        }
        let spools = held.withLock(\.spools)
        return names.filter { $0 != "tmp" && !named.contains($0) }.map(blobPath).filter { !isUnattached($0) }
            + temporaries.filter { !spools.contains($0) }.map { "\(root)/tmp/\($0)" }
    }

    private func isUnattached(_ path: String) -> Bool {
        held.withLock { held in held.unattached.keys.contains { path.hasSuffix($0) } }
    }

    /// Temporaries were not counted as files; blobs were.
    private func remove(_ paths: [String]) async throws {
        let footprint = footprint
        let isBlob = { @Sendable (path: String) in !path.contains("/blobs/tmp/") }
        try await lanes.run(0) {
            for path in paths {
                let allocated = FileStatus.of(path)?.allocated ?? 0
                if Paths.remove(path), isBlob(path) { footprint.addFiles(-allocated) }
            }
        }
    }
}
