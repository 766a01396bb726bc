// Shared entries for bundles, one page at a time (docs/reference/admin-api.md#bundles, `cache export`).
import GRDB
import RockpoolCore

extension CacheStore {
    /// Returns entries of the shared partition in the order they were stored.
    /// - Parameters:
    ///   - prefix: the prefix of the URLs; "" for all.
    ///   - after: the `id` of the last entry of the previous page; 0 for the first page.
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

    /// Returns the entries of every partition whose URL begins with `prefix`, after entry `after`, in the order of their ids.
    ///
    /// - Throws: `DatabaseError`, `UnreadableRow`.
    package func entries(prefix: String, after: Int64, limit: Int) async throws -> [CacheEntry] {
        try await database.pool.read { db in
            let statement = try db.cachedStatement(
                sql: "SELECT key, \(EntryRow.columns) FROM entry WHERE id > ? AND url >= ? AND url < ? ORDER BY id LIMIT ?")
            return try Row.fetchAll(statement, arguments: [after, prefix, prefix + "\u{10FFFF}", limit]).map {
                try EntryRow.keyed(from: $0)
            }
        }
    }
}
