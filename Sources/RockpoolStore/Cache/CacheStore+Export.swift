// What leaves the cache in bundles: shared entries, in pages (contract §1, `cache export`).
import GRDB
import RockpoolCore

extension CacheStore {
    /// Entries anyone may be given, in the order they were stored.
    /// - Parameters:
    ///   - prefix: of the URL; "" takes all.
    ///   - after: the `id` of the last one of the page before; 0 for the first page.
    /// - Throws: `DatabaseError`, `UnreadableRow`.
    package func sharedEntries(prefix: String, category: String?, after: Int64, limit: Int) async throws -> [CacheEntry] {
        try await database.pool.read { db in
            let statement = try db.cachedStatement(
                sql: """
                    SELECT key, \(EntryRow.columns) FROM entry
                    WHERE id > ? AND identity = '' AND url >= ? AND url < ? AND (?4 IS NULL OR category = ?4) ORDER BY id LIMIT ?
                    """)
            return try Row.fetchAll(statement, arguments: [after, prefix, prefix + "\u{10FFFF}", category, limit])
                .map { try EntryRow.keyed(from: $0) }
        }
    }
}
