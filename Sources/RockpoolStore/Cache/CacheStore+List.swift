// Lists entries in the order of their URLs, one page at a time (docs/reference/admin-api.md#cache, `/v1/cache`).
import GRDB
import RockpoolCore

extension CacheStore {
    /// Returns a page of entries, ordered by URL. The index of URLs, which contains the category, finds them.
    /// - Parameters:
    ///   - prefix: the prefix of the URLs; "" for all.
    ///   - category: the category of the entries; nil for all.
    ///   - text: a text within the URLs; nil for all.
    ///   - cursor: the cursor of the last entry of the previous page; nil for the first page.
    ///   - offset: the number of selected entries to skip, for a jump to a page.
    ///   - limit: 1…1000.
    /// - Throws: `DatabaseError`, `UnreadableRow`.
    package func list(
        prefix: String = "", category: String? = nil, text: String? = nil, after cursor: CacheCursor? = nil, offset: Int = 0,
        limit: Int = 100
    ) async throws -> [CacheListing] {
        let from = cursor.map { max($0.url, prefix) } ?? prefix
        return try await database.pool.read { db in
            let rows = try Row.fetchAll(
                db, sql: CacheListing.pageQuery,
                arguments: [
                    from, prefix + "\u{10FFFF}", cursor?.url ?? "", cursor?.id ?? 0, category, text, min(1000, max(1, limit)),
                    max(0, offset),
                ])
            let counting = try db.cachedStatement(sql: "SELECT count(*) FROM entry WHERE url = ?")
            var counts: [String: Int] = [:]
            return try rows.map { row in
                var listing = try CacheListing(row: row)
                if counts[listing.url] == nil { counts[listing.url] = try Int.fetchOne(counting, arguments: [listing.url]) }
                listing.variants = counts[listing.url] ?? 1
                return listing
            }
        }
    }

    /// Returns the number of entries that a list shows on all its pages.
    /// - Throws: `DatabaseError`.
    package func count(prefix: String = "", category: String? = nil, text: String? = nil) async throws -> Int {
        try await database.pool.read { db in
            try Int.fetchOne(
                db, sql: "SELECT count(*) FROM entry WHERE \(CacheListing.condition)",
                arguments: [prefix, prefix + "\u{10FFFF}", "", 0, category, text]) ?? 0
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
