// Version 8 of the cache's tables: entries on probation, in the order in which they came (docs/storage.md#eviction).
import GRDB

extension CacheSchema {
    /// The condition of an entry that was not read since it was stored.
    static let isOnProbation = "pinned = 0 AND used_at = stored_at"

    static let addProbation: @Sendable (Database) throws -> Void = { db in
        try db.execute(sql: "CREATE INDEX entry_probation ON entry (category, stored_at, bytes) WHERE \(isOnProbation)")
    }
}
