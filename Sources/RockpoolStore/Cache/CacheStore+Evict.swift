// Eviction: expired entries first, then by weight and recency, in batches between which other jobs run (docs/storage.md#eviction).
import GRDB
import Glibc
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
            let gone = try self.delete(rows, until: .now + turn.time, in: db)
            try CacheSchema.raiseFloors(after: gone, in: db)
            return gone
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
            for row in rows where row.isOnProbation { counters.evictedKeys.note(index.opened(row.key)) }
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
            let surplus = min(step.bytes, try probationSurplus(step.category, of: usage[step.category] ?? 0, in: db))
            for (bytes, condition, order) in [
                (surplus, CacheSchema.isOnProbation, "stored_at"), (step.bytes, CacheSchema.isKept, "rank, used_at"),
                (step.bytes, CacheSchema.isOnProbation, "stored_at"),
            ] where bytes > 0 {
                let rows = try leaving(bytes, atMost: count) {
                    try EvictionCandidate.fetch(
                        in: db, where: "category = ? AND \(condition)", arguments: [step.category], order: order, limit: $0)
                }
                if !rows.isEmpty { return rows }
            }
        }
        return []
    }

    /// Returns the bytes of entries on probation beyond their share of the category.
    private func probationSurplus(_ category: String, of evictable: Int64, in db: Database) throws -> Int64 {
        // The sum is read from the index alone, and over so many entries that no more leave in one batch.
        let sum = try db.cachedStatement(
            sql: """
                SELECT coalesce(sum(bytes), 0) FROM
                    (SELECT bytes FROM entry WHERE category = ? AND \(CacheSchema.isOnProbation) ORDER BY stored_at LIMIT \(Self.probationRows))
                """)
        return Probation.surplus(try Int64.fetchOne(sum, arguments: [category]) ?? 0, of: evictable)
    }

    /// The number of entries on probation whose bytes are summed.
    private static let probationRows = 20_000

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
                let reading = try db.cachedStatement(sql: "SELECT category, bytes, uses FROM entry WHERE id = ?")
                let writing = try db.cachedStatement(sql: "UPDATE entry SET used_at = ?, uses = ?, rank = ? WHERE id = ?")
                var floors: [String: Double] = [:]
                for (id, new) in portion {
                    guard let row = try Row.fetchOne(reading, arguments: [id]) else { continue }
                    var columns = RowReader(row)
                    let (category, bytes): (String, Int64) = (try columns.next(), try columns.next())
                    let uses = try columns.next(Int64.self).addedClamped(new.count)
                    let floor = try floors[category] ?? CacheSchema.floor(of: category, in: db)
                    floors[category] = floor
                    let rank = EvictionOrder.rank(requests: CacheSchema.requests(uses), bytes: bytes, above: floor)
                    try writing.execute(arguments: [new.at, uses, rank, id])
                }
            }
        }
    }
}

extension CacheSchema {
    /// Returns the rank of the last entry of a category that has left for its rank; 0 before. What is read now stands above it.
    static func floor(of category: String, in db: Database) throws -> Double {
        try Double.fetchOne(db.cachedStatement(sql: "SELECT floor FROM usage WHERE category = ?"), arguments: [category]) ?? 0
    }

    /// Raises the floors after entries have left, never above an entry that stays: one that had expired may have had any rank.
    fileprivate static func raiseFloors(after gone: [EvictionCandidate], in db: Database) throws {
        let lowest = try db.cachedStatement(sql: "SELECT rank FROM entry WHERE category = ? AND \(isKept) ORDER BY rank LIMIT 1")
        let raising = try db.cachedStatement(sql: "UPDATE usage SET floor = max(floor, ?) WHERE category = ?")
        for (category, rows) in Dictionary(grouping: gone.filter { !$0.isOnProbation }, by: \.category) {
            guard let highest = rows.map(\.rank).max() else { continue }
            let left = try Double.fetchOne(lowest, arguments: [category]) ?? highest
            try raising.execute(arguments: [min(highest, left), category])
        }
    }
}

/// The pace of eviction, cleanup and compaction in one cache: short turns with pauses while the cache is in use, long turns while it is
/// idle (docs/storage.md#eviction: hits are not disturbed).
///
/// A hit takes a fraction of a millisecond. A turn beside hits therefore takes at most about one millisecond, which is the longest delay of
/// a hit on a machine with few cores.
final class BackgroundThrottle: Sendable {
    /// The amount of work until the next check for requests.
    enum Turn: Sendable {
        /// Requests are being served.
        case short
        /// The cache is idle, or a writer waits for this work.
        case long

        /// The time after which a turn starts no further work.
        var time: Duration { self == .short ? .milliseconds(1) : .milliseconds(10) }
        /// Returns the rows of this turn, where a long turn takes `most`.
        func rows(of most: Int) -> Int { self == .short ? min(8, most) : most }
        /// Returns the pages this turn gives back, where a long turn moves `most`.
        func pages(of most: Int) -> Int { self == .short ? min(16, most) : most }
    }

    /// The pause before a short turn: the work then uses at most a fifth of one core.
    private static let rest: Duration = .milliseconds(4)
    /// How long after a lookup further lookups are expected.
    private static let patience: TimeSpan = .milliseconds(200)

    private let lookups: @Sendable () -> UInt64
    private let clock: @Sendable () -> Timestamp
    private let last: Mutex<(lookups: UInt64, changed: Timestamp?)>

    /// - Parameter lookups: returns the number of lookups in the cache so far.
    init(clock: @escaping @Sendable () -> Timestamp, lookups: @escaping @Sendable () -> UInt64) {
        self.clock = clock
        self.lookups = lookups
        last = Mutex((lookups(), nil))
    }

    /// Returns the next turn; pauses first while requests are served. Call it before each turn.
    func next() async -> Turn {
        guard isAsked else { return .long }
        try? await Task.sleep(for: Self.rest)
        return .short
    }

    /// Pauses this thread for three times `worked`, inside a long statement that cannot be suspended.
    func rest(after worked: Duration) {
        guard isAsked else { return }
        usleep(UInt32(clamping: 3 * worked.components.attoseconds / 1_000_000_000_000))
    }

    private var isAsked: Bool {
        let (count, now) = (lookups(), clock())
        return last.withLock { last in
            if count != last.lookups { last = (count, now) }
            return last.changed.map { (.zero..<Self.patience).contains(now - $0) } ?? false
        }
    }
}
