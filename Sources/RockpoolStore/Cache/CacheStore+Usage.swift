// Usage figures of the cache, and pinning (docs/reference/admin-api.md#storage).
import GRDB
import Logging
package import RockpoolCore
import Synchronization

extension CacheStore {
    /// Returns the sums of the ledger; nothing is scanned.
    package func usage() async throws -> CacheUsage {
        // An unreadable database leaves the categories empty: the page that reports the problem must still show the other figures.
        let byCategory = (try? await database.pool.read { try CategoryUsage.byName(in: $0) }) ?? [:]
        let parts = footprint.parts
        let (ledger, unusedLog) = (footprint.ledger, footprint.unusedLogBudget)
        let (evictions, badBodies) = counters.withLock { ($0.evictions, $0.badBodies) }
        let audit = lastAudit.withLock(\.self)
        return CacheUsage(
            entries: byCategory.values.reduce(0) { $0 + $1.entries }, byCategory: byCategory, usedBytes: ledger.used - unusedLog,
            reservedBytes: ledger.reserved, unusedLogBytes: unusedLog, limitBytes: ledger.limit,
            limitReason: footprint.bound.reason, databaseBytes: parts.database, logBytes: parts.log,
            bodyBytes: parts.files, reclaimableBytes: parts.freePages, pinnedBytes: byCategory.values.reduce(0) { $0 + $1.pinnedBytes },
            memoryBytes: memory.bytes, evictions: evictions, badBodies: badBodies, freeDiskBytes: FreeSpace.bytes(at: directory),
            minFreeBytes: settings.minFree.bytes, driftBytes: audit?.driftBytes ?? 0, auditedAt: audit?.at)
    }

    /// Pins every variant stored for a URL, which exempts them from eviction, or unpins them.
    /// - Returns: the number of changed entries; nil when the pinned bytes would exceed their cap.
    package func pin(url: String, _ isPinned: Bool) async throws -> Int? {
        let (cap, forms) = (pinCap, (index.sealed(url), url))
        let keys: [String]? = try await queue.commit { db in
            let added =
                try Int64.fetchOne(
                    db, sql: "SELECT coalesce(sum(bytes), 0) FROM entry WHERE url IN (?, ?) AND pinned = 0", arguments: [forms.0, forms.1])
                ?? 0
            if isPinned, try Self.pinnedBytes(in: db) + added > cap { return nil }
            return try String.fetchAll(
                db, sql: "UPDATE entry SET pinned = ?1 WHERE url IN (?2, ?3) AND pinned <> ?1 RETURNING key",
                arguments: [isPinned, forms.0, forms.1])
        }
        memory.remove(keys ?? [])
        return keys?.count
    }

    /// Returns the bytes that a cleanup could free, by category: of what is past its offline window, and of what is stale and not kept for
    /// offline use. What is pinned is not among them.
    package func reclaimable(now: Timestamp) async throws -> [String: Int64] {
        let kept = categories.filter(\.isKept).map(\.name)
        let marks = kept.map { _ in "?" }.joined(separator: ", ")
        return try await database.pool.read { db in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT category, sum(bytes) FROM entry
                    WHERE pinned = 0 AND (kept_until < ? OR fresh_until < ? AND category NOT IN (\(marks))) GROUP BY category
                    """, arguments: [now.milliseconds, now.milliseconds] + StatementArguments(kept))
            return try rows.reduce(into: [:]) { found, row in
                var columns = RowReader(row)
                found[try columns.next()] = try columns.next()
            }
        }
    }

    /// Maximum bytes of all pinned entries together.
    private var pinCap: Int64 { settings.cacheLimit.bytes.multipliedClamped(by: Int64(settings.pinCapPercent)) / 100 }

    /// True if the replacement of a pinned variant may be pinned too: the cap applies to entries that grow as it does to new ones.
    func mayStayPinned(_ row: EntryRow, in db: Database) throws -> Bool {
        let pinned = try Self.pinnedBytes(in: db)
        if pinned + row.bytes <= pinCap { return true }
        logger.warning(
            "no longer pinned: it has grown, and storage.pin_cap would be passed",
            metadata: [
                "url": "\(SecretParameters.redacted(url: row.key.url))", "bytes": "\(row.bytes)", "pinned": "\(pinned)", "cap": "\(pinCap)",
            ])
        return false
    }

    private static func pinnedBytes(in db: Database) throws -> Int64 {
        try Int64.fetchOne(try db.cachedStatement(sql: "SELECT coalesce(sum(pinned_bytes), 0) FROM usage")) ?? 0
    }

    // MARK: - Events
    // The last event of each URL, recorded when an entry is stored or removed (docs/reference/admin-api.md#explain *explain*).

    /// Records that a response to `url` was stored, or why it was not.
    package func note(_ event: KeyEvents.Event, of url: String) {
        let now = clock()
        keyEvents.withLock { $0.note(event, of: url, at: now) }
    }

    func note(_ event: KeyEvents.Event, of rows: [EvictionCandidate]) {
        let (now, urls) = (clock(), rows.compactMap { CacheKey(text: index.opened($0.key))?.url })
        keyEvents.withLock { events in urls.forEach { events.note(event, of: $0, at: now) } }
    }

    /// Returns the last event of `url`; nil when none is recorded. Only the last few thousand URLs are kept.
    package func lastEvent(of url: String) -> KeyEvents.Record? { keyEvents.withLock { $0.last(of: url) } }

    /// Returns the maximum bytes of a body that may be stored in a category, for a URL of an upstream that may have a quota. A larger one would
    /// be evicted with everything else as soon as it is stored.
    package func largestBody(in category: CacheCategory, of url: String? = nil) -> Int64 {
        let share = settings.cacheLimit.bytes.multipliedClamped(by: Int64(category.sharePercent)) / 100
        let quota = url.flatMap { self.quota(of: Self.origin(of: $0)) } ?? Int64.max
        return min(category.maxObject?.bytes ?? .max, share, quota, footprint.largestFile)
    }

    // MARK: - Quotas
    // Quotas of upstreams: what one of them stores takes no space from the others beyond its quota (docs/storage.md#limits-and-shares
    // *upstreams*).

    /// A quota is kept by evicting down to this part of it, in percent, so that not every response that is stored evicts another.
    private static let quotaLowMark = 95

    /// Sets the most bytes that the entries of each origin may take, and evicts what exceeds them; other origins have no quota.
    /// - Parameter quotas: called on the writer, so that of two calls at the same time the newer quotas stay.
    /// - Throws: `DatabaseError`; the quotas that were set before then still apply.
    package func setQuotas(_ quotas: @escaping @Sendable () -> [OriginAddress: ByteCount]) async throws {
        let origins = try await queue.commit(weight: .mib(1)) { db in
            let quotas = Dictionary(uniqueKeysWithValues: quotas().map { ($0.url, $1.bytes) })
            if self.quotas.withLock({ $0 != quotas }) || quotas.isEmpty { try OriginSums.begin(for: quotas.keys, in: db) }
            self.quotas.withLock { $0 = quotas }
            return quotas.keys.sorted()
        }
        for origin in origins { await keepQuota(of: origin) }
    }

    /// Returns the bytes that the entries of an origin with a quota take; nil without a quota.
    package func bytesUnderQuota(of origin: OriginAddress) async throws -> Int64? {
        guard quota(of: origin.url) != nil else { return nil }
        return try await database.pool.read { db in
            try Int64.fetchOne(db, sql: "SELECT coalesce(sum(bytes), 0) FROM entry WHERE origin = ?", arguments: [origin.url])
        }
    }

    /// Returns the quota of an origin in bytes; nil without one.
    func quota(of origin: String) -> Int64? { quotas.withLock { $0[origin] } }

    /// True if an origin takes more than its quota.
    func exceedsQuota(_ origin: String, in db: Database) throws -> Bool {
        guard let quota = quota(of: origin) else { return false }
        return try OriginSums.bytes(of: origin, in: db) > quota
    }

    /// Evicts the least recently used entries of an origin down to the low mark of its quota. Pinned entries stay.
    func keepQuota(of origin: String) async {
        guard let quota = quota(of: origin) else { return }
        let goal = quota.percent(Self.quotaLowMark)
        try? await writeBackRecency()
        while true {
            let rows = try? await queue.commit { db in
                let excess = try OriginSums.bytes(of: origin, in: db) - goal
                guard excess > 0 else { return [] as [EvictionCandidate] }
                let rows = try self.leaving(excess, atMost: self.batchRows) {
                    try EvictionCandidate.fetch(
                        in: db, where: "origin = ? AND pinned = 0", arguments: [origin], order: "used_at", limit: $0)
                }
                return try self.delete(rows, in: db)
            }
            guard let rows, !rows.isEmpty else { return }
            noteEviction(of: rows)
        }
    }
}

/// The space used by the cache, by kind (docs/reference/admin-api.md#storage, `/v1/storage`).
package struct CacheUsage: Sendable {
    package var entries: Int
    package var byCategory: [String: CategoryUsage]
    /// Everything under the directory, as `du` counts it.
    package var usedBytes: Int64
    /// Bytes reserved for writers.
    package var reservedBytes: Int64
    /// Bytes that the log may still grow by; they count against the limit too.
    package var unusedLogBytes: Int64
    /// The configured limit, or less when the disk has less space.
    package var limitBytes: Int64
    /// The bound that determines `limitBytes`.
    package var limitReason: DiskBound.Reason
    package var databaseBytes: Int64
    package var logBytes: Int64
    /// Bytes of the files in `bodies/`.
    package var bodyBytes: Int64
    /// Bytes of free pages; compaction returns them to the file system.
    package var reclaimableBytes: Int64
    package var pinnedBytes: Int64
    package var memoryBytes: Int64
    /// Entries evicted since the start.
    package var evictions: Int
    /// Bodies that failed their checksum since the start.
    package var badBodies: Int
    /// Free bytes of the file system, as available to this process.
    package var freeDiskBytes: Int64
    /// The part of them that is left free (`storage.min_free`).
    package var minFreeBytes: Int64
    /// Bytes that the ledger counted for bodies beyond their allocated size at the last audit (negative: fewer). Any value but 0 is a bug.
    package var driftBytes: Int64
    /// The time of the last comparison of the ledger with the disk; nil when there was none since the start.
    package var auditedAt: Timestamp?
}

/// Entries and bytes of one category.
package struct CategoryUsage: Hashable, Sendable, Codable {
    package var entries: Int
    package var bytes: Int64
    /// The pinned part of `entries`.
    package var pinnedEntries = 0
    /// The pinned part of `bytes`.
    package var pinnedBytes: Int64 = 0
}

// Reads the sums that triggers keep per category (docs/storage.md#ledger), so that no rows are counted.
extension CategoryUsage {
    /// Returns the usage of every category that has entries, by name.
    static func byName(in db: Database) throws -> [String: CategoryUsage] {
        let statement = try db.cachedStatement(
            sql: "SELECT category, entries, bytes, pinned_entries, pinned_bytes FROM usage WHERE entries > 0")
        return try Row.fetchAll(statement).reduce(into: [:]) { usage, row in
            var columns = RowReader(row)
            usage[try columns.next(String.self)] = CategoryUsage(
                entries: try columns.next(), bytes: try columns.next(), pinnedEntries: try columns.next(),
                pinnedBytes: try columns.next())
        }
    }
}

/// The result of one audit of `bodies/` (docs/storage.md#scrub).
package struct LedgerAudit: Hashable, Sendable {
    package var at: Timestamp
    /// Allocated bytes on the disk, without foreign files.
    package var diskBytes: Int64
    /// Bytes that the ledger counted beyond that; negative: fewer.
    package var driftBytes: Int64
}

/// Sums of stored entries by origin, and the order in which an origin's entries leave. Without a quota there is neither, and no cost.
enum OriginSums {
    /// Counts the entries of these origins from now on, and of no others. Call it on the writing connection.
    static func begin(for origins: some Collection<String>, in db: Database) throws {
        try db.execute(
            sql: """
                DROP TRIGGER IF EXISTS temp.origin_entry_came;
                DROP TRIGGER IF EXISTS temp.origin_entry_went;
                DROP TRIGGER IF EXISTS temp.origin_entry_changed;
                DROP TABLE IF EXISTS temp.origin_sum;
                """)
        guard !origins.isEmpty else { return try db.execute(sql: "DROP INDEX IF EXISTS entry_origin") }
        try db.execute(
            sql: """
                CREATE INDEX IF NOT EXISTS entry_origin ON entry (origin, used_at, bytes);
                CREATE TEMP TABLE origin_sum (origin TEXT PRIMARY KEY, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;
                CREATE TEMP TRIGGER origin_entry_came AFTER INSERT ON main.entry BEGIN
                    UPDATE origin_sum SET bytes = bytes + new.bytes WHERE origin = new.origin;
                END;
                CREATE TEMP TRIGGER origin_entry_went AFTER DELETE ON main.entry BEGIN
                    UPDATE origin_sum SET bytes = bytes - old.bytes WHERE origin = old.origin;
                END;
                CREATE TEMP TRIGGER origin_entry_changed AFTER UPDATE OF bytes ON main.entry BEGIN
                    UPDATE origin_sum SET bytes = bytes + new.bytes - old.bytes WHERE origin = new.origin;
                END;
                """)
        for origin in origins {
            try db.execute(
                sql: "INSERT INTO origin_sum SELECT ?1, (SELECT coalesce(sum(bytes), 0) FROM entry WHERE origin = ?1)", arguments: [origin])
        }
    }

    /// Returns the bytes of the entries of an origin with a quota; 0 for any other. Call it on the connection that `begin` was called on.
    static func bytes(of origin: String, in db: Database) throws -> Int64 {
        try Int64.fetchOne(db.cachedStatement(sql: "SELECT bytes FROM origin_sum WHERE origin = ?"), arguments: [origin]) ?? 0
    }
}
