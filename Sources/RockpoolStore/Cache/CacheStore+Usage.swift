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
        let cap = pinCap
        let keys: [String]? = try await queue.commit { db in
            let added =
                try Int64.fetchOne(
                    db, sql: "SELECT coalesce(sum(bytes), 0) FROM entry WHERE url = ? AND pinned = 0", arguments: [url]) ?? 0
            if isPinned, try Self.pinnedBytes(in: db) + added > cap { return nil }
            return try String.fetchAll(
                db, sql: "UPDATE entry SET pinned = ?1 WHERE url = ?2 AND pinned <> ?1 RETURNING key", arguments: [isPinned, url])
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
}
