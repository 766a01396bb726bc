// Cache access for a pull: the stored URLs and partitions of a resource, and removal of single keys (docs/outbox.md#delta-pull).
import GRDB
package import RockpoolCore

extension CacheStore {
    /// Maximum number of URLs in one listing.
    private static let listLimit = 100_000

    /// Returns the names of the partitions that hold GET responses with this URL prefix; "" is the shared partition.
    package func partitions(prefix: String) async throws -> Set<String> {
        try await database.pool.read { db in
            try Set(
                String.fetchAll(
                    db, sql: "SELECT DISTINCT identity FROM entry WHERE url >= ? AND url < ?", arguments: [prefix, prefix + "\u{10FFFF}"]))
        }
    }

    /// Returns the distinct stored URLs with this prefix, sorted; of one partition, or of all.
    /// - Parameters:
    ///   - isPresent: True leaves out the URLs of which only an absence is stored (404, 410).
    ///   - isOutdated: True leaves only the URLs with an entry that is marked as out of date; anonymous copies always are.
    package func urls(
        prefix: String, in partition: StoragePartition? = nil, isPresent: Bool = false, isOutdated: Bool = false
    ) async throws -> [String] {
        let arguments: StatementArguments = [
            prefix, prefix + "\u{10FFFF}", partition?.name, isPresent, isOutdated, StoragePartition.anonymous.name,
        ]
        return try await database.pool.read { db in
            try String.fetchAll(
                db,
                sql: """
                    SELECT DISTINCT url FROM entry
                    WHERE url >= ?1 AND url < ?2 AND (?3 IS NULL OR identity = ?3) AND (NOT ?4 OR status NOT IN (404, 410))
                        AND (NOT ?5 OR invalid = 1 AND identity <> ?6)
                    ORDER BY url LIMIT \(Self.listLimit)
                    """, arguments: arguments)
        }
    }

    /// Removes every variant of these keys.
    /// - Throws: `DatabaseError`; entries removed before the error stay removed.
    package func remove(keys: [CacheKey]) async throws {
        for key in keys {
            _ = try await take(dryRun: false) { db in
                try EvictionCandidate.fetch(
                    in: db, where: "key_hash = ? AND key = ?", arguments: [EntryRow.keyHash(key), key.text], limit: Self.variantLimit + 8)
            }
        }
    }
}
