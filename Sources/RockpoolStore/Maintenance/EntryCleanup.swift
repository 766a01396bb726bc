// The entries that a cleanup removes: expired ones, then assets over their share, by the same walk for a run and a dry run
// (docs/storage.md#cleanup).
import FoundationEssentials
import GRDB
import RockpoolCore

/// The changes that a run makes; each checks its condition again before it is made.
struct CleanupDeeds: Sendable {
    /// Deletes the entries of a page that still meet the condition, and returns them.
    var remove: @Sendable ([EvictionCandidate], RowCondition) async throws -> [EvictionCandidate]
    /// Deletes the rows of a body that still has no file.
    var removeLost: @Sendable (_ hash: [UInt8]) async throws -> Int
    /// Unlinks bodies that still have no row. Returns their number.
    var unlink: @Sendable (_ hashes: [[UInt8]]) async throws -> Int
}

/// Walks the entries by index, one page of rows per read, so that neither a read nor memory grows with the cache.
struct EntryCleanup: Sendable {
    let reader: any DatabaseReader
    let categories: [CacheCategory]
    /// Configured bytes of the cache.
    let limit: Int64
    let settings: CleanupSettings
    let hold: CleanupHold
    let now: Timestamp
    /// nil in a dry run.
    let deeds: CleanupDeeds?
    /// The condition for entries that a dry run would have removed so far. After a real step no row meets it.
    private var taken = RowCondition.never
    /// Rows with a missing body that a dry run would have removed, pinned or not.
    private var lost: [Holding: RemovalCount] = [:]

    init(
        reader: any DatabaseReader, categories: [CacheCategory], limit: Int64, settings: CleanupSettings, hold: CleanupHold = CleanupHold(),
        now: Timestamp, deeds: CleanupDeeds?
    ) {
        self.reader = reader
        self.categories = categories
        self.limit = limit
        (self.settings, self.hold) = (settings, hold)
        self.now = now
        self.deeds = deeds
    }

    /// Rows of one read.
    static let pageRows = 1000

    /// A position in the order of an index: all rows up to it have been read.
    private struct Place: Sendable {
        var value = Int64.min
        var id = Int64.min
    }

    private struct Page: Sendable {
        var leaving: [EvictionCandidate] = []
        /// nil after the last page.
        var end: Place?
    }

    private struct Holding: Hashable {
        var category: String
        var isPinned: Bool
    }

    /// Runs all steps for the entries and the files of a cache.
    mutating func clean(_ orphans: OrphanCleanup, run: CleanupRun) async {
        if !run.pausesExpiry { await run.attempt(.expired) { try await takeExpired(run) } }
        await run.attempt(.assets) { try await takeAssets(run) }
        await run.attempt(.orphans) { try await orphans.take(&self, run: run) }
        await run.attempt(.temporaries) { try await orphans.takeTemporaries(run) }
        await run.attempt(.kept) {
            try await countHeld(run)
            try await countKept(run)
            if deeds == nil { try await foresee(in: "\(orphans.directory)/bodies", run: run) }
        }
    }

    private var keptCategories: [String] { categories.filter(\.isKept).map(\.name).sorted() }

    /// Removes entries past the offline window, and stale entries unused for the requested or configured time; every stale entry when the
    /// cleanup is aggressive.
    mutating func takeExpired(_ run: CleanupRun) async throws {
        let unusedBefore = run.options.aggressive ? Int64.max : (now - (run.options.olderThan ?? settings.expiredAfter)).milliseconds
        let pastWindow = RowCondition("pinned = 0 AND kept_until < ?", [now.milliseconds])
        let kept = keptCategories
        let marks = kept.map { _ in "?" }.joined(separator: ", ")
        let unused =
            RowCondition("pinned = 0 AND fresh_until < ? AND used_at < ?", [now.milliseconds, unusedBefore])
            && RowCondition("category NOT IN (\(marks))", StatementArguments(kept)) && !held(run.options)
        let asked = asked(run.options)
        defer { taken = taken || ((pastWindow || unused) && asked) }
        try await walk(by: "kept_until", within: pastWindow, goes: asked, as: "expired", run: run)
        let names = try await reader.read { try String.fetchAll($0, sql: "SELECT category FROM usage WHERE entries > 0 ORDER BY category") }
        for name in names where !kept.contains(name) {
            let within = RowCondition("pinned = 0 AND category = ? AND used_at < ?", [name, unusedBefore])
            try await walk(by: "used_at", within: within, goes: unused && !pastWindow && asked, as: "stale, offline copy", run: run)
        }
    }

    /// Removes assets over their share, the least recently used first; all assets when the cleanup is aggressive, unless the category is
    /// kept.
    mutating func takeAssets(_ run: CleanupRun) async throws {
        let name = CacheCategory.assets.name
        let share = categories.first { $0.name == name }?.sharePercent ?? CacheCategory.assets.sharePercent
        let evictable = try await left(run)[Holding(category: name, isPinned: false)]?.bytes ?? 0
        let over = run.options.aggressive && !keptCategories.contains(name) ? Int64.max : evictable - limit.percent(share)
        let within = RowCondition("pinned = 0 AND category = ?", [name])
        let goes = asked(run.options) && !held(run.options) && !taken
        let last = try await walk(by: "used_at", within: within, goes: goes, as: "assets", upTo: over, run: run)
        guard let last else { return }
        let upTo = RowCondition("(used_at, id) <= (?, ?)", [last.usedAt.milliseconds, last.id])
        taken = taken || (within && goes && upTo)
    }

    /// Removes rows with a missing body.
    mutating func takeLost(_ hashes: [[UInt8]], run: CleanupRun) async throws {
        for hash in hashes {
            if let deeds {
                let count = try await deeds.removeLost(hash)
                run.note { $0.orphans += count }
            } else {
                let condition = RowCondition("in_file = 1 AND body_sha = ?", [hash.data]) && !taken
                let found = try await reader.read { try Self.holdings(in: $0, where: condition) }
                lost.merge(found) { $0 + $1 }
                run.note { $0.orphans += found.values.reduce(0) { $0 + $1.entries } }
            }
        }
    }

    /// Counts the kept entries, by category and reason.
    func countKept(_ run: CleanupRun) async throws {
        let left = try await left(run)
        run.note { report in
            for (holding, count) in left where count.entries > 0 {
                report.kept.add(count, of: holding.category, as: holding.isPinned ? "pinned" : "notDue")
            }
        }
    }

    /// Counts what the removal of the rows would give back beside their small bodies: the files of bodies that only they use, the
    /// directories that have no other, and the rest of the rows, which is taken to be the same for all.
    private func foresee(in directory: String, run: CleanupRun) async throws {
        let (taken, removed) = (taken, run.report.removed.total.entries)
        let (files, shards, rows) = try await reader.read { db in
            let sql = """
                WITH gone AS (
                    SELECT body_sha AS sha FROM entry WHERE in_file = 1 GROUP BY body_sha
                    HAVING min(CASE WHEN \(taken.sql) THEN 1 ELSE 0 END) = 1
                )
                SELECT substr(sha, 1, 1) AS shard, sum(iif(sha IN (SELECT sha FROM gone), allocated, 0)), min(sha IN (SELECT sha FROM gone))
                FROM body GROUP BY shard
                """
            var (files, shards): (Int64, [String]) = (0, [])
            for row in try Row.fetchAll(db, sql: sql, arguments: taken.arguments) {
                var columns = RowReader(row)
                let shard: Data = try columns.next()
                files += try columns.next(Int64.self)
                if try columns.next(Bool.self) { shards.append(Digest.hex(Array(shard))) }
            }
            let pages = try Compaction.Pages(db)
            let roots = try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_schema WHERE rootpage > 0")
            let inline = try Int64.fetchOne(db, sql: "SELECT sum(bytes) FROM entry WHERE in_file = 0") ?? 0
            return (files, shards, max(0, Int64(pages.used - (roots ?? 0)) * StoreDatabase.pageSize - inline))
        }
        run.freeFiles(files + shards.reduce(0) { $0 + (FileStatus.of("\(directory)/\($1)")?.allocated ?? 0) })
        let all = try await reader.read { try Int64.fetchOne($0, sql: "SELECT coalesce(sum(entries), 0) FROM usage") } ?? 0
        if all > 0 { run.freeRows(Int64(Double(rows) * Double(removed) / Double(all))) }
    }

    /// The condition for offline copies that stay although they are stale, or assets over their share.
    private func held(_ options: CleanupOptions) -> RowCondition {
        guard !options.includesHeld else { return .never }
        var condition = RowCondition.never
        for (column, texts) in [("origin", hold.origins), ("url", hold.urls)] where !texts.isEmpty {
            let marks = texts.map { _ in "?" }.joined(separator: ", ")
            condition = condition || RowCondition("\(column) IN (\(marks))", StatementArguments(texts))
        }
        return RowCondition("pinned = 0 AND kept_until >= ?", [now.milliseconds]) && condition
    }

    /// Counts the offline copies that only the hold has kept, by their origins.
    private func countHeld(_ run: CleanupRun) async throws {
        guard run.options.aggressive, !run.options.includesHeld, !(hold.origins.isEmpty && hold.urls.isEmpty) else { return }
        let condition =
            held(run.options) && asked(run.options) && RowCondition("(fresh_until < ? OR category = ?)", [now.milliseconds, "assets"])
            && RowCondition(
                "category NOT IN (\(keptCategories.map { _ in "?" }.joined(separator: ", ")))", StatementArguments(keptCategories))
        let found = try await reader.read { db in
            try Row.fetchAll(
                db, sql: "SELECT origin, count(*), sum(bytes) FROM entry WHERE \(condition.sql) GROUP BY origin",
                arguments: condition.arguments
            ).map { row in
                var columns = RowReader(row)
                return (try columns.next(String.self), RemovalCount(entries: try columns.next(), bytes: try columns.next()))
            }
        }
        run.note { $0.held = Dictionary(found) { $0 + $1 } }
    }

    /// Returns the condition of `--category` and `--older-than`, which restricts every removal.
    private func asked(_ options: CleanupOptions) -> RowCondition {
        var condition = RowCondition("1")
        if let category = options.category { condition = condition && RowCondition("category = ?", [category]) }
        if let span = options.olderThan { condition = condition && RowCondition("used_at < ?", [(now - span).milliseconds]) }
        return condition
    }

    /// Returns the present usage, less what a dry run would have removed.
    private func left(_ run: CleanupRun) async throws -> [Holding: RemovalCount] {
        var left: [Holding: RemovalCount] = [:]
        for (category, usage) in try await reader.read({ try CategoryUsage.byName(in: $0) }) {
            let pinned = RemovalCount(entries: usage.pinnedEntries, bytes: usage.pinnedBytes)
            left[Holding(category: category, isPinned: true)] = pinned
            left[Holding(category: category, isPinned: false)] = RemovalCount(entries: usage.entries, bytes: usage.bytes)
            left[Holding(category: category, isPinned: false)]?.subtract(pinned)
        }
        guard deeds == nil else { return left }
        for (category, count) in run.report.removed.byCategory { left[Holding(category: category, isPinned: false)]?.subtract(count) }
        for (holding, count) in lost { left[holding]?.subtract(count) }
        return left
    }

    private static func holdings(in db: Database, where condition: RowCondition) throws -> [Holding: RemovalCount] {
        let sql = "SELECT category, pinned, count(*), sum(bytes) FROM entry WHERE \(condition.sql) GROUP BY category, pinned"
        return try Row.fetchAll(db, sql: sql, arguments: condition.arguments).reduce(into: [:]) { holdings, row in
            var columns = RowReader(row)
            let holding = Holding(category: try columns.next(), isPinned: try columns.next())
            holdings[holding] = RemovalCount(entries: try columns.next(), bytes: try columns.next())
        }
    }

    /// Walks the rows `within` an index, removes those that meet `goes` until `bytes` are reached, and counts the removed ones.
    /// - Returns: the last removed row.
    @discardableResult
    private func walk(
        by column: String, within: RowCondition, goes: RowCondition, as reason: String, upTo bytes: Int64 = .max, run: CleanupRun
    ) async throws -> EvictionCandidate? {
        var next: Place? = Place()
        var missing = bytes
        var last: EvictionCandidate?
        while let place = next, missing > 0 {
            let page = try await reader.read { try Self.page(in: $0, by: column, within: within, goes: goes, after: place) }
            let chosen = page.leaving.reaching(missing)
            let gone = try await deeds?.remove(chosen, within && goes) ?? chosen
            missing -= gone.reduce(0) { $0 + $1.bytes }
            run.took(gone, as: reason)
            last = chosen.last ?? last
            next = page.end
        }
        return last
    }

    /// Returns the next rows of an index and those of them to remove. Kept rows count too, so that no read is longer than its page.
    private static func page(
        in db: Database, by column: String, within: RowCondition, goes: RowCondition, after place: Place
    ) throws -> Page {
        let statement = try db.cachedStatement(
            sql: """
                SELECT \(goes.sql), \(column), id, key, category, bytes, in_file, used_at FROM entry
                WHERE \(within.sql) AND (\(column), id) > (?, ?) ORDER BY \(column), id LIMIT \(pageRows)
                """)
        var page = Page()
        var seen = 0
        let rows = try Row.fetchCursor(statement, arguments: goes.arguments + within.arguments + [place.value, place.id])
        while let row = try rows.next() {
            var columns = RowReader(row)
            let isLeaving: Bool = try columns.next()
            let value: Int64 = try columns.next()
            let leaving = try EvictionCandidate(&columns)
            page.end = Place(value: value, id: leaving.id)
            if isLeaving { page.leaving.append(leaving) }
            seen += 1
        }
        if seen < pageRows { page.end = nil }
        return page
    }
}

extension EvictionCandidate {
    /// Reads `id, key, category, bytes, in_file, used_at`.
    init(_ columns: inout RowReader) throws {
        (id, key, category) = (try columns.next(), try columns.next(), try columns.next())
        bytes = try columns.next()
        inlineBytes = try columns.next(Bool.self) ? 0 : bytes
        usedAt = Timestamp(milliseconds: try columns.next())
    }
}
