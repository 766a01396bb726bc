// What a pull asks of the cache: what is stored of a resource and whose it is, and taking single keys away (outbox.md §1.11).
import GRDB
package import RockpoolCore

extension CacheStore {
    /// URLs of one listing at most.
    private static let listLimit = 100_000

    /// The names of the partitions that hold GET responses below a URL; "" is the shared one.
    package func partitions(prefix: String) async throws -> Set<String> {
        try await database.pool.read { db in
            try Set(
                String.fetchAll(
                    db, sql: "SELECT DISTINCT identity FROM entry WHERE url >= ? AND url < ?", arguments: [prefix, prefix + "\u{10FFFF}"]))
        }
    }

    /// The URLs stored below a URL, each once, in their order; of one partition, or of all.
    package func urls(prefix: String, in partition: StoragePartition? = nil) async throws -> [String] {
        try await database.pool.read { db in
            try String.fetchAll(
                db,
                sql: """
                    SELECT DISTINCT url FROM entry WHERE url >= ?1 AND url < ?2 AND (?3 IS NULL OR identity = ?3) ORDER BY url
                    LIMIT \(Self.listLimit)
                    """, arguments: [prefix, prefix + "\u{10FFFF}", partition?.name])
        }
    }

    /// Takes every variant of these keys away.
    /// - Throws: `DatabaseError`; what had been taken by then stays away.
    package func remove(keys: [CacheKey]) async throws {
        for key in keys {
            _ = try await take(dryRun: false) { db in
                try Leaving.fetch(
                    db, where: "key_hash = ? AND key = ?", arguments: [EntryRow.keyHash(key), key.text], limit: Self.variantLimit + 8)
            }
        }
    }
}
