// Version 9 of the cache's tables: how often an entry was read, and the order in which entries leave (docs/storage.md#eviction).
import GRDB
import RockpoolCore

extension CacheSchema {
    /// The value of `uses` of an entry that was not read since it was stored. SQLite keeps 0 and 1 in no byte, and a row whose size changes is
    /// written anew with its body: the count begins where it takes one byte.
    static let unread: Int64 = 2
    /// The condition of an entry that was not read since it was stored.
    static let isOnProbation = "pinned = 0 AND uses = \(unread)"
    /// The condition of one that was, or that took the place of another.
    static let isKept = "pinned = 0 AND uses > \(unread)"

    /// The requests that an entry has answered, the one that stored it included.
    static func requests(_ uses: Int64) -> Int64 { uses.subtractedClamped(unread).addedClamped(1) }

    /// Adds `uses` and `rank`, by which a category's entries leave, and `floor`, the rank of the last that has left. Entries that were read
    /// before keep their order by `used_at`.
    static let addUses: @Sendable (Database) throws -> Void = { db in
        try db.execute(
            sql: """
                ALTER TABLE entry ADD COLUMN uses INTEGER NOT NULL DEFAULT \(unread);
                ALTER TABLE entry ADD COLUMN rank REAL NOT NULL DEFAULT 0;
                ALTER TABLE usage ADD COLUMN floor REAL NOT NULL DEFAULT 0;
                UPDATE entry SET uses = \(unread + 1) WHERE used_at <> stored_at;
                DROP INDEX entry_probation;
                DROP INDEX entry_size;
                ALTER TABLE entry DROP COLUMN size_class;
                CREATE INDEX entry_probation ON entry (category, stored_at, bytes) WHERE \(isOnProbation);
                CREATE INDEX entry_rank ON entry (category, rank, used_at) WHERE \(isKept);
                """)
    }
}
