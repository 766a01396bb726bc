// Eviction: expired entries first, then by weight and recency, in batches between which other jobs run (docs/storage.md#eviction).
import GRDB
import RockpoolCore
import Synchronization

extension CacheStore {
    /// True while no entry expires by age alone, because the clock is in doubt (`ClockTrust`).
    package var pausesExpiry: Bool {
        get { counters.withLock(\.pausesExpiry) }
        set { counters.withLock { $0.pausesExpiry = newValue } }
    }

    /// Bytes of one batch: unlinking them takes the writer a few milliseconds.
    private static let batchBytes: Int64 = 64_000_000
    /// Number of attempts to give pages back while a reader is active, and the pause between them.
    private static let reclaimTries = 10
    private static let reclaimPause: Duration = .milliseconds(20)

    /// Evicts down to the low mark if the soft limit is exceeded; does nothing otherwise, or when eviction is already running.
    /// - Returns: the evicted entries.
    @discardableResult
    package func evictToLowMark() async -> RemovalCount {
        guard footprint.ledger.isEvictionDue, room.startRun() else { return RemovalCount() }
        return await makeRoom()
    }

    /// Runs one eviction: first at full speed for waiting writers, then at background pace down to the low mark. Each batch is one turn of
    /// the writer, so other jobs run in between.
    @discardableResult
    func makeRoom() async -> RemovalCount {
        var evicted = RemovalCount()
        while let wanted = room.next() {
            let turn = wanted == SpaceRequest() ? await pace.next() : .long
            try? await writeBackRecency()
            let rows = (try? await evictBatch(for: wanted, turn)) ?? []
            evicted.entries += rows.count
            evicted.bytes += rows.reduce(0) { $0 + $1.bytes }
            let hasReclaimed = await reclaimed(for: wanted, turn)
            if rows.isEmpty && !hasReclaimed && !room.giveUp() { break }
        }
        return evicted
    }

    /// Evicts one batch. The rows are chosen inside the transaction, because another job may have made space meanwhile.
    private func evictBatch(for wanted: SpaceRequest, _ turn: BackgroundThrottle.Turn) async throws -> [EvictionCandidate] {
        let rows = try await queue.commit { db in
            let goal = self.room.shortfall(for: wanted)
            guard goal > 0 else { return [] as [EvictionCandidate] }
            let rows = try self.nextToGo(in: db, goal: min(goal, Self.batchBytes), atMost: turn.rows(of: self.batchRows))
            return try self.delete(rows, until: .now + turn.time, in: db)
        }
        noteEviction(of: rows)
        return rows
    }

    /// Records that these entries were evicted.
    func noteEviction(of rows: [EvictionCandidate]) {
        memory.remove(rows.map(\.key))
        note(.evicted, of: rows)
        counters.withLock { counters in
            counters.evictions += rows.count
            for row in rows where row.isOnProbation { counters.evictedKeys.note(row.key) }
        }
    }

    /// Returns expired entries; when there are none, entries of the first category that can give space.
    /// - Parameter count: the maximum number of rows.
    func nextToGo(in db: Database, goal: Int64, atMost count: Int) throws -> [EvictionCandidate] {
        if !pausesExpiry {
            let expired = try leaving(goal, atMost: count) {
                try EvictionCandidate.fetch(
                    in: db, where: "pinned = 0 AND kept_until < ?", arguments: [clock().milliseconds], order: "kept_until", limit: $0)
            }
            guard expired.isEmpty else { return expired }
        }
        let usage = try CategoryUsage.byName(in: db).mapValues { $0.bytes - $0.pinnedBytes }
        let limit = max(0, footprint.ledger.limit - footprint.parts.log - footprint.parts.fixed)
        for step in EvictionOrder.plan(goal: goal, usage: usage, categories: categories, limit: limit) {
            let unread = try leavingProbation(step, of: usage[step.category] ?? 0, atMost: count, in: db)
            if !unread.isEmpty { return unread }
            let rows =
                if step.category == CacheCategory.assets.name {
                    try leaving(step.bytes, atMost: count) { try largeAndOld(in: db, limit: $0) }
                } else {
                    try leaving(step.bytes, atMost: count) {
                        try EvictionCandidate.fetch(
                            in: db, where: "pinned = 0 AND category = ?", arguments: [step.category], order: "used_at", limit: $0)
                    }
                }
            if !rows.isEmpty { return rows }
        }
        return []
    }

    /// Returns the oldest entries that were not read since they were stored, as far as they hold more than their share of the category.
    private func leavingProbation(
        _ step: EvictionOrder.Step, of evictable: Int64, atMost count: Int, in db: Database
    ) throws -> [EvictionCandidate] {
        // The sum is read from the index alone, and over so many entries that no more leave in one batch.
        let sum = try db.cachedStatement(
            sql: """
                SELECT coalesce(sum(bytes), 0) FROM
                    (SELECT bytes FROM entry WHERE category = ? AND \(CacheSchema.isOnProbation) ORDER BY stored_at LIMIT \(Self.probationRows))
                """)
        let surplus = Probation.surplus(try Int64.fetchOne(sum, arguments: [step.category]) ?? 0, of: evictable)
        guard surplus > 0 else { return [] }
        let isAssets = step.category == CacheCategory.assets.name
        return try leaving(min(step.bytes, surplus), atMost: count) { limit in
            let oldest = try EvictionCandidate.fetch(
                in: db, where: "category = ? AND \(CacheSchema.isOnProbation)", arguments: [step.category], order: "stored_at",
                limit: isAssets ? 4 * limit : limit)
            return isAssets ? byWorth(oldest) : oldest
        }
    }

    /// The number of entries on probation whose bytes are summed.
    private static let probationRows = 20_000

    /// Returns assets by bytes × age: in each size class, an index finds those unused the longest, however many there are.
    private func largeAndOld(in db: Database, limit: Int) throws -> [EvictionCandidate] {
        let perClass = max(8, limit / SizeClass.count)
        let rows = try SizeClass.all.flatMap { size in
            try EvictionCandidate.fetch(
                in: db, where: "pinned = 0 AND category = '\(CacheCategory.assets.name)' AND size_class = ?", arguments: [size],
                order: "used_at", limit: perClass)
        }
        return byWorth(rows)
    }

    /// Returns entries by bytes × age, the largest product first.
    private func byWorth(_ rows: [EvictionCandidate]) -> [EvictionCandidate] {
        let now = clock()
        return rows.map { ($0, EvictionOrder.worth($0.bytes, idle: now - $0.usedAt)) }.sorted { ($0.1, $1.0.id) > ($1.1, $0.0.id) }.map(\.0)
    }

    /// Returns a batch from the front of an order. An entry with a body file being read is skipped: unlinking would not free its space yet.
    func leaving(_ bytes: Int64, atMost count: Int, _ fetch: (Int) throws -> [EvictionCandidate]) throws -> [EvictionCandidate] {
        let read = bodies.beingRead
        return Array(
            try fetch(count + read.count).filter { row in row.fileHash.map { !read.contains($0) } ?? true }.reaching(bytes).prefix(count))
    }

    /// Gives pages back. An open read transaction keeps the file from being truncated; retry briefly.
    private func reclaimed(for wanted: SpaceRequest, _ turn: BackgroundThrottle.Turn) async -> Bool {
        for _ in 0..<Self.reclaimTries {
            if await reclaimStep(for: wanted, turn) { return true }
            guard footprint.parts.freePages > 0, room.missing(for: wanted) > 0 else { return false }
            try? await Task.sleep(for: Self.reclaimPause)
        }
        return false
    }

    /// Gives free pages back to the file system when the disk lacks that space: for a file, or under a lowered limit. Rows reuse free pages
    /// without this.
    /// - Returns: true if the file has fewer free pages now.
    private func reclaimStep(for wanted: SpaceRequest, _ turn: BackgroundThrottle.Turn) async -> Bool {
        let step = turn.pages(of: database.pagesPerStep)
        let (footprint, room) = (footprint, room)
        let before = try? await queue.outside { db -> Int64? in
            let before = footprint.parts.freePages
            guard before > 0, room.missing(for: wanted) > 0 else { return nil }
            try db.giveBack(pages: step)
            return before
        }
        return before.map { footprint.parts.freePages < $0 } ?? false
    }

    /// Writes the last uses kept in memory into the rows, in batches that keep the log within its budget.
    func writeBackRecency() async throws {
        let used = recency.withLock { recency in
            defer { recency = [:] }
            return recency.sorted { $0.key < $1.key }
        }
        var rest = used[...]
        while !rest.isEmpty {
            let portion = rest.prefix(batchRows)
            rest = rest.dropFirst(portion.count)
            try await queue.commit(weight: .kib(Int64(portion.count))) { db in
                let statement = try db.cachedStatement(sql: "UPDATE entry SET used_at = ? WHERE id = ?")
                for (id, time) in portion { try statement.execute(arguments: [time, id]) }
            }
        }
    }
}
