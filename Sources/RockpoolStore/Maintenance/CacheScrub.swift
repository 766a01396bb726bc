// Scrub of the cache's index against its files: hashes every body and recomputes every sum without blocking requests
// (docs/storage.md#scrub).
import FoundationEssentials
import GRDB
import RockpoolCore

/// The repairs of a scrub; each checks its finding again before it changes anything.
struct CacheScrubDeeds: Sendable {
    /// Deletes the rows of a body that is still bad. Returns their number.
    var dropBad: @Sendable (_ hash: [UInt8]) async throws -> Int
    /// Deletes the rows of a body that is still missing. Returns their number.
    var dropMissing: @Sendable (_ hash: [UInt8]) async throws -> Int
    /// Deletes an entry with a bad body in its row. Returns true if it existed.
    var dropEntry: @Sendable (_ id: Int64) async throws -> Bool
    /// Unlinks bodies that still have no row. Returns their number.
    var unlink: @Sendable (_ hashes: [[UInt8]]) async throws -> Int
    /// Recomputes the reference count and the allocated bytes of a body.
    var recount: @Sendable (_ hash: [UInt8]) async throws -> Void
    /// Subtracts the drift from each sum.
    var settle: @Sendable (CacheSums) async throws -> Void
}

/// One walk over a cache, running or stopped. Each turn is a directory of bodies or a page of rows.
struct CacheScrub: Sendable {
    let directory: String
    let reader: any DatabaseReader
    /// Opens what lies sealed; nil where no key is at hand.
    let seal: BodySeal?
    /// A lane of its own: hashing a large body must not delay reads and writes.
    let lanes = FileLanes(label: "rockpool.scrub", count: 1)
    /// nil in a dry run.
    let deeds: CacheScrubDeeds?
    /// Returns true if a body's file is about to be unlinked or to get its row.
    let isAwaited: @Sendable ([UInt8]) -> Bool

    /// Rows of one read that contains bodies: a few megabytes at most.
    private static let pageRows = 100

    private var root: String { "\(directory)/bodies" }
    private func path(of hash: [UInt8]) -> String { "\(root)/\(Digest.hex(hash.prefix(1)))/\(Digest.hex(hash))" }

    func clean(_ run: ScrubRun) async {
        run.note { $0.cache = ScrubReport.Cache() }
        var isSound = false
        await run.attempt("pages") {
            let problems = try await PageCheck.problems(reader, byTable: true)
            run.note { $0.cache?.pages = problems }
            isSound = problems.isEmpty
        }
        // Rows on damaged pages may be invisible, so a file without a row proves nothing: no repairs.
        let deeds = isSound ? deeds : nil
        await run.attempt("count") {
            let inFiles = "SELECT count(*) FROM entry WHERE in_file = 1"
            let sql = "SELECT (SELECT count(*) FROM body) + (SELECT count(*) FROM entry) - (\(inFiles))"
            run.expect(try await reader.read { try Int.fetchOne($0, sql: sql) } ?? 0)
        }
        await run.attempt("foreign") {
            let shards = BodyShards(root: root)
            let names = try await lanes.run(0) { shards.foreign() }
            run.note { $0.cache?.foreign.add(names) }
        }
        for shard in UInt8.min...UInt8.max {
            await run.attempt("bodies/\(Digest.hex([shard]))") { try await check(shard, deeds: deeds, run: run) }
        }
        await run.attempt("bodies in rows") { try await checkRows(deeds, run: run) }
        await run.attempt("sums") {
            let sums = try await reader.read { try CacheSums($0) }
            run.note { sums.note(in: &$0.cache) }
            if sums != CacheSums() { try await deeds?.settle(sums) }
        }
    }

    // MARK: - Files

    private struct Row: Sendable {
        var body: StoredBody
        var allocated: Int64
        /// The stored reference count, and the actual number of entries.
        var counted: Int
        var entries: Int
    }

    private func check(_ shard: UInt8, deeds: CacheScrubDeeds?, run: ScrubRun) async throws {
        let (shards, reader) = (BodyShards(root: root), reader)
        let found = try await lanes.run(0) { try shards.difference(in: shard, reader: reader) }
        let unnamed = found.unnamed.filter { !isAwaited($0) }
        let orphans = try await deeds?.unlink(unnamed) ?? unnamed.count
        run.note { report in
            report.cache?.foreign.add(found.foreign)
            report.cache?.orphans += orphans
        }
        for row in try await reader.read({ try rows(of: shard, in: $0) }) {
            try Task.checkCancellation()
            try await check(row, deeds: deeds, run: run)
            run.passed()
        }
        for hash in try await reader.read({ try Self.bodiesWithoutRow(of: shard, in: $0) }) {
            run.note { $0.cache?.bodies.missing += 1 }
            try await drop(hash, by: deeds?.dropMissing, run: run)
        }
    }

    private func check(_ row: Row, deeds: CacheScrubDeeds?, run: ScrubRun) async throws {
        let (hash, path) = (row.body.hash, path(of: row.body.hash))
        let verdict = await run.verdict(of: row.body, seal: seal, on: lanes)
        // The body may have been removed since its row was read.
        if verdict != .intact, try await !isStillNamed(hash) { return }
        run.note { $0.cache?.bodies.add(row.body, verdict) }
        switch verdict {
        case .bad: return try await drop(hash, by: deeds?.dropBad, run: run)
        case .missing: return try await drop(hash, by: deeds?.dropMissing, run: run)
        case .intact, nil: break
        }
        if row.counted != row.entries { run.note { $0.cache?.drift.references += 1 } }
        let allocated = try await lanes.run(0) { FileStatus.of(path)?.allocated }
        if row.counted != row.entries || allocated.map({ $0 != row.allocated }) == true { try await deeds?.recount(hash) }
    }

    private func drop(_ hash: [UInt8], by deed: (@Sendable ([UInt8]) async throws -> Int)?, run: ScrubRun) async throws {
        let count: Int
        if let deed {
            count = try await deed(hash)
        } else {
            let sql = "SELECT count(*) FROM entry WHERE in_file = 1 AND body_sha = ?"
            count = try await reader.read { try Int.fetchOne($0, sql: sql, arguments: [hash.data]) } ?? 0
        }
        run.note { $0.cache?.dropped += count }
    }

    private func isStillNamed(_ hash: [UInt8]) async throws -> Bool {
        let sql = "SELECT EXISTS (SELECT 1 FROM body WHERE sha = ?)"
        return try await reader.read { try Bool.fetchOne($0, sql: sql, arguments: [hash.data]) } ?? false
    }

    private func rows(of shard: UInt8, in db: Database) throws -> [Row] {
        let statement = try db.cachedStatement(
            sql: """
                SELECT \(StoredBody.fileColumns), allocated, refs, (SELECT count(*) FROM entry WHERE in_file = 1 AND body_sha = sha)
                FROM body WHERE sha >= ? AND sha < ? ORDER BY sha
                """)
        return try GRDB.Row.fetchAll(statement, arguments: BodyShards.bounds(of: shard)).map { row in
            var columns = RowReader(row)
            let body = try StoredBody(file: &columns, at: path(of:))
            return Row(body: body, allocated: try columns.next(), counted: try columns.next(), entries: try columns.next())
        }
    }

    private static func bodiesWithoutRow(of shard: UInt8, in db: Database) throws -> [[UInt8]] {
        let statement = try db.cachedStatement(
            sql: """
                SELECT DISTINCT body_sha FROM entry WHERE in_file = 1 AND body_sha >= ? AND body_sha < ?
                    AND NOT EXISTS (SELECT 1 FROM body WHERE sha = body_sha)
                """)
        return try Data.fetchAll(statement, arguments: BodyShards.bounds(of: shard)).map { Array($0) }
    }

    // MARK: - Rows

    private func checkRows(_ deeds: CacheScrubDeeds?, run: ScrubRun) async throws {
        var last: Int64 = 0
        while true {
            try Task.checkCancellation()
            let from = last
            let rows = try await reader.read { try Self.page(in: $0, after: from) }
            for (id, body) in rows {
                let verdict = await run.verdict(of: body, seal: seal, on: lanes)
                run.note { $0.cache?.bodies.add(body, verdict) }
                if verdict == .bad {
                    let isGone = try await deeds?.dropEntry(id) ?? true
                    run.note { $0.cache?.dropped += isGone ? 1 : 0 }
                }
                run.passed()
            }
            guard let end = rows.last?.id else { return }
            last = end
        }
    }

    private static func page(in db: Database, after id: Int64) throws -> [(id: Int64, body: StoredBody)] {
        let statement = try db.cachedStatement(
            sql: """
                SELECT id, \(StoredBody.rowColumns) FROM entry WHERE in_file = 0 AND id > ? ORDER BY id LIMIT \(pageRows)
                """)
        return try GRDB.Row.fetchAll(statement, arguments: [id]).map { row in
            var columns = RowReader(row)
            return (try columns.next(), try StoredBody(row: &columns))
        }
    }
}

/// The excess of each sum that triggers keep over the rows it sums up, recomputed; zero for a correct sum. A drift is not changed by any
/// write of a store (docs/storage.md#scrub).
struct CacheSums: Hashable, Sendable {
    struct Usage: Hashable, Sendable {
        var entries: Int
        var bytes: Int64
        var pinnedEntries: Int
        var pinnedBytes: Int64
    }

    /// By category; correct categories are left out.
    var usage: [String: Usage] = [:]
    var bodyBytes: Int64 = 0

    init() {}

    /// Computes the drift in one snapshot, which contains each concurrent write completely or not at all.
    init(_ db: Database) throws {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT category, sum(entries) AS e, sum(bytes) AS b, sum(pinned_entries) AS pe, sum(pinned_bytes) AS pb FROM (
                    SELECT category, entries, bytes, pinned_entries, pinned_bytes FROM usage
                    UNION ALL SELECT category, -count(*), -sum(bytes), -sum(pinned), -sum(pinned * bytes) FROM entry GROUP BY category
                ) GROUP BY category HAVING e <> 0 OR b <> 0 OR pe <> 0 OR pb <> 0
                """)
        for row in rows {
            var columns = RowReader(row)
            usage[try columns.next(String.self)] = Usage(
                entries: try columns.next(), bytes: try columns.next(), pinnedEntries: try columns.next(), pinnedBytes: try columns.next())
        }
        bodyBytes = try BodySum.drift(in: db)
    }

    /// Subtracts the drift. Correct at any later time, because writes in between do not change the drift.
    func settle(in db: Database) throws {
        for (category, drift) in usage {
            try db.execute(
                sql: """
                    INSERT INTO usage (category, entries, bytes, pinned_entries, pinned_bytes) VALUES (?1, -?2, -?3, -?4, -?5)
                        ON CONFLICT (category) DO UPDATE SET entries = entries - ?2, bytes = bytes - ?3,
                            pinned_entries = pinned_entries - ?4, pinned_bytes = pinned_bytes - ?5
                    """, arguments: [category, drift.entries, drift.bytes, drift.pinnedEntries, drift.pinnedBytes])
        }
        try db.execute(
            sql: """
                INSERT INTO total (name, bytes) VALUES ('bodies', -?1) ON CONFLICT (name) DO UPDATE SET bytes = bytes - ?1
                """, arguments: [bodyBytes])
    }

    func note(in cache: inout ScrubReport.Cache?) {
        cache?.drift.entries = usage.values.reduce(0) { $0 + abs($1.entries) }
        cache?.drift.entryBytes = usage.values.reduce(0) { $0 + abs($1.bytes) }
        cache?.drift.bodyBytes = bodyBytes
    }
}
