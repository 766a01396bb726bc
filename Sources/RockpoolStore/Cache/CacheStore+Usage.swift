// What the cache holds: for people, lists and pins (contract §4, §5).
import GRDB
import RockpoolCore
import Synchronization

extension CacheStore {
    /// Sums as the ledger has them; nothing is scanned but the pinned.
    package func usage() async throws -> CacheUsage {
        let (byCategory, pinned) = try await database.pool.read { db in
            (try self.usageByCategory(db), try Self.pinnedBytes(db))
        }
        let parts = footprint.parts
        let (ledger, unusedLog) = (footprint.ledger, footprint.unusedLogBudget)
        let (evictions, badBodies) = counters.withLock { ($0.evictions, $0.badBodies) }
        return CacheUsage(
            entries: byCategory.values.reduce(0) { $0 + $1.entries }, byCategory: byCategory, usedBytes: ledger.used - unusedLog,
            reservedBytes: ledger.reserved, unusedLogBytes: unusedLog, limitBytes: ledger.limit, databaseBytes: parts.database,
            logBytes: parts.log,
            bodyBytes: parts.files, reclaimableBytes: parts.freePages, pinnedBytes: pinned, memoryBytes: memory.bytes,
            evictions: evictions, badBodies: badBodies, freeDiskBytes: FreeSpace.bytes(at: directory))
    }

    /// Entries in the order they were stored, from after the cursor.
    /// - Parameters:
    ///   - prefix: of the URL; "" takes all.
    ///   - after: the `id` of the last one of the page before; 0 for the first page.
    ///   - limit: 1…1000.
    package func list(prefix: String = "", category: String? = nil, after: Int64 = 0, limit: Int = 100) async throws -> [CacheListing] {
        let most = min(1000, max(1, limit))
        return try await database.pool.read { db in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT id, url, category, status, bytes, stored_at, fresh_until, used_at, pinned, identity <> '' FROM entry
                    WHERE id > ? AND url >= ? AND url < ? AND (?4 IS NULL OR category = ?4) ORDER BY id LIMIT ?5
                    """,
                arguments: [after, prefix, prefix + "\u{10FFFF}", category, most])
            return try rows.map(CacheListing.init(row:))
        }
    }

    /// Keeps every variant stored for a URL from being evicted, or lets it go again.
    /// - Returns: how many entries changed; nil when the pinned bytes would pass their cap.
    package func pin(url: String, _ isPinned: Bool) async throws -> Int? {
        let cap = settings.cacheLimit.bytes.multipliedClamped(by: Int64(settings.pinCapPercent)) / 100
        return try await queue.commit { db in
            let added =
                try Int64.fetchOne(
                    db, sql: "SELECT coalesce(sum(bytes), 0) FROM entry WHERE url = ? AND pinned = 0", arguments: [url]) ?? 0
            if isPinned, try Self.pinnedBytes(db) + added > cap { return nil }
            try db.execute(sql: "UPDATE entry SET pinned = ?1 WHERE url = ?2 AND pinned <> ?1", arguments: [isPinned, url])
            return db.changesCount
        }
    }

    private static func pinnedBytes(_ db: Database) throws -> Int64 {
        try Int64.fetchOne(db, sql: "SELECT coalesce(sum(bytes), 0) FROM entry WHERE pinned = 1") ?? 0
    }
}

extension CacheListing {
    fileprivate init(row: Row) throws {
        var columns = RowReader(row)
        self.init(
            id: try columns.next(), url: try columns.next(), category: try columns.next(), status: try columns.next(),
            bytes: try columns.next(), storedAt: Timestamp(milliseconds: try columns.next()),
            freshUntil: Timestamp(milliseconds: try columns.next()), lastUsedAt: Timestamp(milliseconds: try columns.next()),
            isPinned: try columns.next(), isPrivate: try columns.next())
    }
}
