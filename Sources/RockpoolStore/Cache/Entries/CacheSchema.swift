// The tables of `cache.sqlite`: one row per variant, reference-counted bodies, sums kept by triggers (docs/storage.md#ledger,
// docs/storage.md#what-is-stored-where).
import GRDB
import HTTPTypes
import RockpoolCore

/// The cache's schema. Sums change in the transaction that changes the rows, so that a start needs no scan.
enum CacheSchema {
    /// "RPch", as shown by `file` and other tools.
    static let identity = DatabaseIdentity(
        applicationID: 0x5250_6368,
        migrations: [
            create, addGroupsAndRules, addCodingAndSums, addParts, addSealing, addOwnWrites, addOriginGrants, addProbation,
            addUses, addTicks,
        ],
        synchronous: .normal)

    /// Creates the index by which the copies of one identity are found. It came without a version, because an older Rockpool can use and keep
    /// it.
    static func indexIdentities(in db: Database) throws {
        try db.execute(sql: "CREATE INDEX IF NOT EXISTS entry_identity ON entry (identity) WHERE identity <> ''")
    }

    private static let create: @Sendable (Database) throws -> Void = { db in
        try db.execute(sql: tables)
        try db.execute(sql: triggers)
    }

    /// Version 2. Cache groups are found by name, in one origin or in all, and are deleted with their entry. The index of URLs includes the
    /// category, so that a list filtered by both skips other categories without reading their rows.
    private static let addGroupsAndRules: @Sendable (Database) throws -> Void = { db in
        try db.execute(
            sql: """
                CREATE TABLE entry_group (
                    entry INTEGER NOT NULL REFERENCES entry (id) ON DELETE CASCADE,
                    origin TEXT NOT NULL,
                    name TEXT NOT NULL,
                    PRIMARY KEY (name, origin, entry)
                ) STRICT, WITHOUT ROWID;
                CREATE INDEX entry_group_entry ON entry_group (entry);
                CREATE TABLE search_rule (
                    path TEXT PRIMARY KEY,
                    rule TEXT NOT NULL,
                    used_at INTEGER NOT NULL
                ) STRICT, WITHOUT ROWID;
                DROP INDEX entry_url;
                CREATE INDEX entry_url ON entry (url, category);
                """)
    }

    /// `body` is the last column, so that reading the other columns never traverses its overflow pages.
    private static let tables = """
        CREATE TABLE entry (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            key_hash BLOB NOT NULL CHECK (length(key_hash) = 16),
            variant TEXT NOT NULL,
            key TEXT NOT NULL,
            url TEXT NOT NULL,
            origin TEXT NOT NULL,
            identity TEXT NOT NULL,
            category TEXT NOT NULL,
            status INTEGER NOT NULL CHECK (status BETWEEN 100 AND 599),
            fields BLOB NOT NULL,
            request_fields BLOB NOT NULL,
            request_time INTEGER NOT NULL,
            response_time INTEGER NOT NULL,
            assigned_ttl INTEGER,
            stored_at INTEGER NOT NULL,
            used_at INTEGER NOT NULL,
            fresh_until INTEGER NOT NULL,
            kept_until INTEGER NOT NULL,
            invalid INTEGER NOT NULL DEFAULT 0 CHECK (invalid IN (0, 1)),
            pinned INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
            bytes INTEGER NOT NULL CHECK (bytes >= 0),
            body_sha BLOB NOT NULL CHECK (length(body_sha) = 32),
            body_length INTEGER NOT NULL CHECK (body_length >= 0),
            in_file INTEGER NOT NULL CHECK (in_file IN (0, 1)),
            body BLOB CHECK ((body IS NULL) = (in_file = 1))
        ) STRICT;
        CREATE UNIQUE INDEX entry_key ON entry (key_hash, variant);
        CREATE INDEX entry_url ON entry (url);
        CREATE INDEX entry_use ON entry (category, used_at) WHERE pinned = 0;
        CREATE INDEX entry_pinned ON entry (category, bytes) WHERE pinned = 1;
        CREATE INDEX entry_kept ON entry (kept_until) WHERE pinned = 0;
        CREATE INDEX entry_file ON entry (body_sha) WHERE in_file = 1;
        CREATE TABLE body (
            sha BLOB PRIMARY KEY,
            length INTEGER NOT NULL,
            allocated INTEGER NOT NULL,
            refs INTEGER NOT NULL DEFAULT 0 CHECK (refs >= 0)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX body_unused ON body (sha) WHERE refs = 0;
        CREATE TABLE usage (
            category TEXT PRIMARY KEY,
            entries INTEGER NOT NULL,
            bytes INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE total (name TEXT PRIMARY KEY, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        INSERT INTO total VALUES ('bodies', 0);
        """

    private static let triggers = """
        CREATE TRIGGER entry_came AFTER INSERT ON entry BEGIN
            INSERT INTO usage VALUES (new.category, 0, 0) ON CONFLICT DO NOTHING;
            UPDATE usage SET entries = entries + 1, bytes = bytes + new.bytes WHERE category = new.category;
            UPDATE body SET refs = refs + 1 WHERE new.in_file = 1 AND sha = new.body_sha;
        END;
        CREATE TRIGGER entry_went AFTER DELETE ON entry BEGIN
            UPDATE usage SET entries = entries - 1, bytes = bytes - old.bytes WHERE category = old.category;
            UPDATE body SET refs = refs - 1 WHERE old.in_file = 1 AND sha = old.body_sha;
        END;
        CREATE TRIGGER entry_changed AFTER UPDATE OF category, bytes ON entry BEGIN
            INSERT INTO usage VALUES (new.category, 0, 0) ON CONFLICT DO NOTHING;
            UPDATE usage SET entries = entries - 1, bytes = bytes - old.bytes WHERE category = old.category;
            UPDATE usage SET entries = entries + 1, bytes = bytes + new.bytes WHERE category = new.category;
        END;
        CREATE TRIGGER body_came AFTER INSERT ON body BEGIN
            UPDATE total SET bytes = bytes + new.allocated WHERE name = 'bodies';
        END;
        CREATE TRIGGER body_went AFTER DELETE ON body BEGIN
            UPDATE total SET bytes = bytes - old.allocated WHERE name = 'bodies';
        END;
        """
}

// Version 3: coding of stored bodies, sums of pinned entries, size classes of assets (docs/storage.md#eviction).
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

    // Version 4: several parts of one variant side by side (RFC 9111 §3.4).

    /// Adds `part`, the offset of a part in the whole body; -1 for a whole body.
    ///
    /// Up to version 3 a body could be completed wrongly from a part (a chunk was duplicated where the transfer was resumed), and the rows
    /// do not record which bodies were completed. So the migration removes all parts and every whole body that may have been completed from
    /// one: any with a strong entity tag and long enough for its transfer to have been aborted.
    static let addParts: @Sendable (Database) throws -> Void = { db in
        var doubtful: [Int64] = []
        let wholes = try Row.fetchCursor(
            db, sql: "SELECT id, fields FROM entry WHERE status = 200 AND body_length > ?", arguments: [ClientAbortPolicy.smallRest.bytes])
        while let row = try wholes.next() {
            var columns = RowReader(row)
            let id: Int64 = try columns.next()
            let fields = FieldCodec.decode(try columns.next()) ?? [:]
            if fields[.eTag].flatMap({ EntityTag($0) })?.isStrong == true { doubtful.append(id) }
        }
        for id in doubtful { try db.execute(sql: "DELETE FROM entry WHERE id = ?", arguments: [id]) }
        try db.execute(
            sql: """
                DELETE FROM entry WHERE status = 206;
                ALTER TABLE entry ADD COLUMN part INTEGER NOT NULL DEFAULT -1 CHECK (part >= -1);
                DROP INDEX entry_key;
                CREATE UNIQUE INDEX entry_key ON entry (key_hash, variant, part);
                """)
    }

    // Version 5: bodies that lie sealed, and no credential among what selects a variant.

    /// SQLite cannot alter a CHECK; making `entry` anew would copy every body. So its text is changed where it stands, as the page on
    /// ALTER TABLE allows for constraints that only become wider (https://www.sqlite.org/lang_altertable.html, "Making Other Kinds Of
    /// Table Schema Changes"). Variants that were selected by a credential hold its value: they go.
    static let addSealing: @Sendable (Database) throws -> Void = { db in
        for name in SecretFields.all {
            try db.execute(sql: "DELETE FROM entry WHERE instr(char(10) || variant, char(10) || ?)", arguments: ["\(name.canonicalName): "])
        }
        let version = try Int.fetchOne(db, sql: "PRAGMA schema_version") ?? 0
        try db.execute(
            sql: """
                PRAGMA writable_schema = ON;
                UPDATE sqlite_schema SET sql = replace(sql, 'CHECK (coding IN (0, 1))', 'CHECK (coding IN (0, 1, 2, 3))')
                    WHERE type = 'table' AND name IN ('entry', 'body');
                PRAGMA schema_version = \(version + 1);
                PRAGMA writable_schema = RESET;
                """)
    }

    // Version 6: marks of copies that an own write has made out of date (docs/outbox.md#effects).

    /// Adds `own_write_at`, the time of the last own write since the copy was fetched, null without one; and `own_write_included`, 1 if the
    /// copy includes every such write.
    static let addOwnWrites: @Sendable (Database) throws -> Void = { db in
        try db.execute(
            sql: """
                ALTER TABLE entry ADD COLUMN own_write_at INTEGER;
                ALTER TABLE entry ADD COLUMN own_write_included INTEGER NOT NULL DEFAULT 0 CHECK (own_write_included IN (0, 1));
                """)
    }

    // Version 7: what upstreams permit to pages of other origins (docs/caching.md#pages-of-other-origins).

    /// `name` is the upstream's origin, the page's origin and the group of paths, a line each.
    static let addOriginGrants: @Sendable (Database) throws -> Void = { db in
        try db.execute(
            sql: """
                CREATE TABLE origin_grant (
                    name TEXT PRIMARY KEY,
                    permission TEXT NOT NULL,
                    used_at INTEGER NOT NULL
                ) STRICT, WITHOUT ROWID;
                """)
    }

    // Version 8: entries on probation, in the order in which they came (docs/storage.md#eviction).

    static let addProbation: @Sendable (Database) throws -> Void = { db in
        try db.execute(
            sql: "CREATE INDEX entry_probation ON entry (category, stored_at, bytes) WHERE pinned = 0 AND used_at = stored_at")
    }

    // Version 9: how often an entry was read, and the order in which entries leave (docs/storage.md#eviction).

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

    // Version 10: the order in which entries were asked for (docs/outbox.md#ticks).

    /// Adds `asked`, the tick of an entry's request, and `run`, the number of the last run of the server. The times of before take the place of
    /// ticks, those of own writes too.
    static let addTicks: @Sendable (Database) throws -> Void = { db in
        let last = Ticks.runTickCount - 1
        try db.execute(
            sql: """
                ALTER TABLE entry ADD COLUMN asked INTEGER NOT NULL DEFAULT 0;
                UPDATE entry SET asked = min(request_time, \(last)), own_write_at = min(own_write_at, \(last));
                CREATE TABLE run (number INTEGER NOT NULL) STRICT;
                INSERT INTO run VALUES (0);
                """)
    }
}

/// Size classes, each four times the one below: eviction by bytes × age searches each class by age alone.
enum SizeClass {
    /// Upper bounds in bytes of all classes but the last.
    private static let bounds = (0..<7).map { Int.kib(4) << (2 * $0) }
    static let all = 0...bounds.count
    static var count: Int { all.count }

    /// The class of a row as a SQL expression.
    static let expression =
        "CASE " + bounds.enumerated().map { "WHEN bytes <= \($1) THEN \($0)" }.joined(separator: " ") + " ELSE \(bounds.count) END"
}
