// Lists entries, one page at a time (docs/reference/admin-api.md#cache, `/v1/cache`).
import GRDB
import RockpoolCore
import Synchronization

extension CacheStore {
    /// Returns a page of entries. By URL the index of URLs, which contains the category, finds them; every other order reads all that the
    /// filter selects.
    /// - Parameters:
    ///   - cursor: the cursor of the last entry of the previous page; nil for the first page.
    ///   - offset: the number of selected entries to skip, for a jump to a page.
    ///   - limit: 1…1000.
    /// - Throws: `DatabaseError`, `UnreadableRow`.
    package func list(
        _ filter: CacheListFilter, after cursor: CacheCursor? = nil, offset: Int = 0, limit: Int = 100
    ) async throws -> [CacheListing] {
        if filter.order == .hits { try? await writeBackRecency() }
        let query = filter.page(after: cursor, offset: offset, limit: limit, at: clock())
        return try await database.pool.read { db in
            let rows = try Row.fetchAll(db, sql: query.sql, arguments: query.arguments)
            let counting = try db.cachedStatement(sql: "SELECT count(*) FROM entry WHERE url = ?")
            var counts: [String: Int] = [:]
            return try rows.map { row in
                var listing = try CacheListing(row: row)
                if counts[listing.url] == nil { counts[listing.url] = try Int.fetchOne(counting, arguments: [listing.url]) }
                listing.variants = counts[listing.url] ?? 1
                // Some uses are not written back yet.
                listing.hits = listing.hits.addedClamped(self.recency.withLock { $0[listing.id]?.count } ?? 0)
                return listing
            }
        }
    }

    /// Returns a page of entries by URL.
    /// - Throws: `DatabaseError`, `UnreadableRow`.
    package func list(
        prefix: String = "", category: String? = nil, after cursor: CacheCursor? = nil, limit: Int = 100
    ) async throws -> [CacheListing] {
        var filter = CacheListFilter()
        (filter.prefix, filter.category) = (prefix, category)
        return try await list(filter, after: cursor, limit: limit)
    }

    /// Returns the number of entries that a list shows on all its pages.
    /// - Throws: `DatabaseError`.
    package func count(_ filter: CacheListFilter) async throws -> Int {
        let condition = filter.condition(at: clock())
        return try await database.pool.read { db in
            try Int.fetchOne(db, sql: "SELECT count(*) FROM entry WHERE \(condition.sql)", arguments: condition.arguments) ?? 0
        }
    }

    /// Returns every entry of an absolute URL: each method, identity and variant, newest first; at most 1000.
    /// - Throws: `DatabaseError`, `UnreadableRow`.
    package func entries(ofURL url: String) async throws -> [CacheEntry] {
        try await database.pool.read { db in
            let statement = try db.cachedStatement(
                sql: "SELECT key, \(EntryRow.columns) FROM entry WHERE url = ? ORDER BY response_time DESC, id DESC LIMIT 1000")
            return try Row.fetchAll(statement, arguments: [url]).map { try EntryRow.keyed(from: $0) }
        }
    }
}
