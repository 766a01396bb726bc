// Version 6 of the cache's tables: marks of copies that an own write has made out of date (docs/outbox.md#effects).
import GRDB

extension CacheSchema {
    /// Adds `own_write_at`, the time of the last own write since the copy was fetched, null without one; and `own_write_included`, 1 if the
    /// copy includes every such write.
    static let addOwnWrites: @Sendable (Database) throws -> Void = { db in
        try db.execute(
            sql: """
                ALTER TABLE entry ADD COLUMN own_write_at INTEGER;
                ALTER TABLE entry ADD COLUMN own_write_included INTEGER NOT NULL DEFAULT 0 CHECK (own_write_included IN (0, 1));
                """)
    }
}
