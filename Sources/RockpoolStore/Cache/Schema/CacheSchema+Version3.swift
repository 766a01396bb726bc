// Version 3 of the cache's tables: coding of stored bodies, sums of pinned entries, size classes of assets
// (docs/storage.md#what-is-stored-where, docs/storage.md#eviction).
import GRDB

extension CacheSchema {
    static let addCodingAndSums: @Sendable (Database) throws -> Void = { db in
        try db.execute(
            sql: """
                ALTER TABLE entry ADD COLUMN coding INTEGER NOT NULL DEFAULT 0 CHECK (coding IN (0, 1));
                ALTER TABLE entry ADD COLUMN size_class INTEGER GENERATED ALWAYS AS (\(SizeClass.expression)) VIRTUAL;
                CREATE INDEX entry_size ON entry (size_class, used_at) WHERE pinned = 0 AND category = 'assets';
                DROP INDEX entry_pinned;
                ALTER TABLE body ADD COLUMN coding INTEGER NOT NULL DEFAULT 0 CHECK (coding IN (0, 1));
                ALTER TABLE body ADD COLUMN stored INTEGER NOT NULL DEFAULT 0;
                UPDATE body SET stored = length;
                ALTER TABLE usage ADD COLUMN pinned_entries INTEGER NOT NULL DEFAULT 0;
                ALTER TABLE usage ADD COLUMN pinned_bytes INTEGER NOT NULL DEFAULT 0;
                UPDATE usage SET pinned_entries = (SELECT count(*) FROM entry WHERE pinned = 1 AND category = usage.category),
                    pinned_bytes = (SELECT coalesce(sum(bytes), 0) FROM entry WHERE pinned = 1 AND category = usage.category);
                DROP TRIGGER entry_came;
                DROP TRIGGER entry_went;
                DROP TRIGGER entry_changed;
                CREATE TRIGGER entry_came AFTER INSERT ON entry BEGIN
                    INSERT INTO usage (category, entries, bytes) VALUES (new.category, 0, 0) ON CONFLICT DO NOTHING;
                    \(change("new", by: "+"))
                    UPDATE body SET refs = refs + 1 WHERE new.in_file = 1 AND sha = new.body_sha;
                END;
                CREATE TRIGGER entry_went AFTER DELETE ON entry BEGIN
                    \(change("old", by: "-"))
                    UPDATE body SET refs = refs - 1 WHERE old.in_file = 1 AND sha = old.body_sha;
                END;
                CREATE TRIGGER entry_changed AFTER UPDATE OF category, bytes, pinned ON entry BEGIN
                    INSERT INTO usage (category, entries, bytes) VALUES (new.category, 0, 0) ON CONFLICT DO NOTHING;
                    \(change("old", by: "-"))
                    \(change("new", by: "+"))
                END;
                """)
    }

    private static func change(_ row: String, by sign: String) -> String {
        """
        UPDATE usage SET entries = entries \(sign) 1, bytes = bytes \(sign) \(row).bytes,
                        pinned_entries = pinned_entries \(sign) \(row).pinned, pinned_bytes = pinned_bytes \(sign) \(row).pinned * \(row).bytes
                        WHERE category = \(row).category;
        """
    }
}
