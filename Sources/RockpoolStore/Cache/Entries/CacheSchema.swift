// The tables of `cache.sqlite`: one row per variant, reference-counted bodies, sums kept by triggers (docs/storage.md#ledger,
// docs/storage.md#what-is-stored-where).
import GRDB

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
