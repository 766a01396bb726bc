// Making room: what is past every window, then by weight and recency, in batches that others can pass (storage.md §4).
import GRDB
import RockpoolCore
import Synchronization

extension CacheStore {
    /// Whether nothing goes for its age alone, because the clock is in doubt (`ClockTrust`).
    package var pausesExpiry: Bool {
        get { counters.withLock(\.pausesExpiry) }
        set { counters.withLock { $0.pausesExpiry = newValue } }
    }

    /// Bytes of one batch: unlinking them takes the writer a few milliseconds.
    private static let batchBytes: Int64 = 64_000_000
    /// After this time a batch begins no further row.
    private static let batchTime: Duration = .milliseconds(10)

    /// From past the soft limit to the low mark; nothing when less is used, or eviction is under way already.
    /// - Returns: what was evicted.
    @discardableResult
    package func evictToLowMark() async -> RemovalCount {
        guard footprint.ledger.evictionGoal > 0, room.startRun() else { return RemovalCount() }
        return await makeRoom()
    }

    /// One run: for those who wait, then on to the low mark. Every batch is a turn of the writer, others pass between.
    @discardableResult
    func makeRoom() async -> RemovalCount {
        var evicted = RemovalCount()
        while let wanted = room.next() {
            try? await writeBackRecency()
            let rows = (try? await evictBatch(for: wanted)) ?? []
            evicted.entries += rows.count
            evicted.bytes += rows.reduce(0) { $0 + $1.bytes }
            let hasReclaimed = await reclaimStep(for: wanted)
            if rows.isEmpty && !hasReclaimed && !room.giveUp() { break }
        }
        return evicted
    }

    /// Chosen when its turn comes: others may have made room meanwhile. What no row takes of the database counts as won.
    private func evictBatch(for wanted: Int64) async throws -> [Leaving] {
        let rows = try await queue.commit { db in
            let goal = self.room.shortfall(for: wanted) - self.footprint.parts.freePages
            guard goal > 0 else { return [] as [Leaving] }
            let rows = try self.nextToGo(db, goal: min(goal, Self.batchBytes))
            return try self.delete(rows, until: .now + Self.batchTime, db)
        }
        memory.remove(rows.map(\.key))
        counters.withLock { $0.evictions += rows.count }
        return rows
    }

    /// What is past every window; when nothing is, of the first category that has something to give.
    func nextToGo(_ db: Database, goal: Int64) throws -> [Leaving] {
        if !pausesExpiry {
            let expired = try leaving(
                db, where: "pinned = 0 AND kept_until < ?", arguments: [clock().milliseconds], order: "kept_until", reaching: goal)
            guard expired.isEmpty else { return expired }
        }
        for step in EvictionOrder.plan(
            goal: goal, usage: try CategoryUsage.byName(db).mapValues { $0.bytes - $0.pinnedBytes }, categories: categories,
            limit: footprint.ledger.limit)
        {
            let rows =
                if step.category == Category.assets.name {
                    try largeAndOld(db, reaching: step.bytes)
                } else {
                    try leaving(
                        db, where: "pinned = 0 AND category = ?", arguments: [step.category], order: "used_at", reaching: step.bytes)
                }
            if !rows.isEmpty { return rows }
        }
        return []
    }

    /// A batch from the front of an order.
    private func leaving(
        _ db: Database, where condition: String, arguments: StatementArguments, order: String, reaching bytes: Int64
    ) throws -> [Leaving] {
        try leaving(bytes) { try Leaving.fetch(db, where: condition, arguments: arguments, order: order, limit: $0) }
    }

    /// A batch of assets by bytes × age: of each class of sizes those unused the longest are looked at, by index, however many there are.
    private func largeAndOld(_ db: Database, reaching bytes: Int64) throws -> [Leaving] {
        let now = clock()
        return try leaving(bytes) { limit in
            let perClass = max(8, limit / SizeClass.count)
            let rows = try SizeClass.all.flatMap { size in
                try Leaving.fetch(
                    db, where: "pinned = 0 AND category = '\(Category.assets.name)' AND size_class = ?", arguments: [size],
                    order: "used_at", limit: perClass)
            }
            return rows.map { ($0, EvictionOrder.worth($0.bytes, idle: now - $0.usedAt)) }.sorted { ($0.1, $1.0.id) > ($1.1, $0.0.id) }
                .map(\.0)
        }
    }

    /// What is being read stays: its file would, too.
    private func leaving(_ bytes: Int64, _ fetch: (Int) throws -> [Leaving]) throws -> [Leaving] {
        let (read, count) = (bodies.beingRead, batchRows)
        return Array(
            try fetch(count + read.count).filter { row in row.fileHash.map { !read.contains($0) } ?? true }.reaching(bytes).prefix(count))
    }

    /// Gives some free pages back to the file system when room is still missing.
    /// - Returns: whether the file has fewer to give now.
    private func reclaimStep(for wanted: Int64) async -> Bool {
        let step = max(16, database.checkpointFrames / 2)
        let (footprint, room) = (footprint, room)
        let before = try? await queue.outside { db -> Int64? in
            let before = footprint.parts.freePages
            guard before > 0, room.shortfall(for: wanted) > 0 else { return nil }
            try db.execute(sql: "PRAGMA incremental_vacuum(\(step))")
            // The file shrinks when the log is copied back.
            _ = try db.checkpoint(.passive)
            return before
        }
        return before.map { footprint.parts.freePages < $0 } ?? false
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
