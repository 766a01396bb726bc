// Version 8 of the cache's tables: entries on probation, in the order in which they came (docs/storage.md#eviction).
import GRDB

extension CacheSchema {
    static let addProbation: @Sendable (Database) throws -> Void = { db in
        try db.execute(
            sql: "CREATE INDEX entry_probation ON entry (category, stored_at, bytes) WHERE pinned = 0 AND used_at = stored_at")
    }
}
