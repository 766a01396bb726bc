// Making room: what is past every window, then by weight and recency, in batches that others can pass (storage.md §4).
import GRDB
import RockpoolCore
import Synchronization

extension CacheStore {
    /// Evicts until `needed` more bytes fit under the limit, and then on to the low mark; with 0, from the soft limit to the low mark.
    /// - Returns: whether anything was won; the caller asks the ledger again.
    func evict(toFit needed: Int64) async -> Bool {
        let target = footprint.ledger.used - footprint.evictionGoal(for: needed)
        var won = false
        while footprint.ledger.used > target {
            let before = footprint.ledger.used
            try? await writeBackRecency()
            let rows = (try? await take(dryRun: false) { try self.nextToGo($0, target: target) }) ?? []
            counters.withLock { $0.evictions += rows.count }
            await reclaim(target: target)
            // Nothing left that may go, and no page to give back.
            if rows.isEmpty && footprint.ledger.used >= before { return won }
            won = true
        }
        return true
    }

    /// From the soft limit to the low mark, with nobody waiting for it; one at a time.
    func evictInBackground() {
        let isFirst = counters.withLock { counters in
            defer { counters.isEvicting = true }
            return !counters.isEvicting
        }
        guard isFirst else { return }
        Task {
            _ = await evict(toFit: 0)
            counters.withLock { $0.isEvicting = false }
        }
    }

    /// The next batch, chosen when its turn comes: others may have made room meanwhile. Free pages count as won.
    private func nextToGo(_ db: Database, target: Int64) throws -> [Leaving] {
        var goal = footprint.ledger.used - target - footprint.parts.freePages
        guard goal > 0 else { return [] }
        var rows = try Leaving.fetch(
            db, where: "pinned = 0 AND kept_until < ?", arguments: [clock().milliseconds], order: "kept_until", limit: batchRows)
        rows = rows.reaching(goal)
        goal -= rows.reduce(0) { $0 + $1.bytes }
        guard rows.isEmpty else { return rows }
        for step in EvictionOrder.plan(
            goal: goal, usage: try evictable(db), categories: categories, limit: settings.cacheLimit.bytes)
        {
            let left = batchRows - rows.count
            guard left > 0 else { break }
            rows += try Leaving.fetch(
                db, where: "pinned = 0 AND category = ?", arguments: [step.category], order: "used_at", limit: left
            ).reaching(step.bytes)
        }
        return rows
    }

    /// Bytes by category without the pinned.
    private func evictable(_ db: Database) throws -> [String: Int64] {
        let pinned = try Row.fetchAll(db, sql: "SELECT category, sum(bytes) FROM entry WHERE pinned = 1 GROUP BY category")
        return try pinned.reduce(into: try usageByCategory(db).mapValues(\.bytes)) { usage, row in
            var columns = RowReader(row)
            usage[try columns.next(String.self), default: 0] -= try columns.next(Int64.self)
        }
    }

    func usageByCategory(_ db: Database) throws -> [String: CategoryUsage] {
        try Row.fetchAll(db, sql: "SELECT category, entries, bytes FROM usage WHERE entries > 0").reduce(into: [:]) { usage, row in
            var columns = RowReader(row)
            usage[try columns.next(String.self)] = CategoryUsage(entries: try columns.next(), bytes: try columns.next())
        }
    }

    /// Gives free pages back to the file system in small steps while more is used than `target`.
    private func reclaim(target: Int64) async {
        let step = max(16, database.checkpointFrames / 2)
        let footprint = footprint
        guard footprint.parts.freePages > 0 else { return }
        try? await queue.outside { db in
            while footprint.ledger.used > target && footprint.parts.freePages > 0 {
                let before = footprint.parts
                try db.execute(sql: "PRAGMA incremental_vacuum(\(step))")
                // The file shrinks when the log is copied back.
                _ = try db.checkpoint(.passive)
                footprint.measure(db)
                if footprint.parts == before { break }
            }
        }
    }

    /// Puts the recency that memory kept into the rows, in portions that leave the log within its budget.
    func writeBackRecency() async throws {
        let used = recency.withLock { recency in
            defer { recency = [:] }
            return recency.sorted { $0.key < $1.key }
        }
        var rest = used[...]
        while !rest.isEmpty {
            let portion = rest.prefix(batchRows)
            rest = rest.dropFirst(portion.count)
            try await queue.commit(weight: Int64(portion.count) * 1024) { db in
                let statement = try db.cachedStatement(sql: "UPDATE entry SET used_at = ? WHERE id = ?")
                for (id, time) in portion { try statement.execute(arguments: [time, id]) }
            }
        }
    }
}

extension [Leaving] {
    /// As many from the front as together take `bytes`.
    func reaching(_ bytes: Int64) -> [Leaving] {
        var left = bytes
        return Array(
            prefix { row in
                defer { left -= row.bytes }
                return left > 0
            })
    }
}
