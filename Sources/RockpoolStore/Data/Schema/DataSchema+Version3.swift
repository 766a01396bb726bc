// Version 3 of `data.sqlite`: conflicts, and the base representations of conflicts and operations (docs/outbox.md#schema,
// docs/outbox.md#merging). History, never
// edited.
import GRDB

extension DataSchema {
    static let version3: @Sendable (Database) throws -> Void = { db in
        try db.execute(sql: tables)
        try db.execute(sql: revisions)
        try db.execute(sql: keeping)
    }

    /// A snapshot is named by the hash of its whole content. `fields` comes last, after the columns that lists read.
    private static let tables = """
        CREATE TABLE snapshot (
            sha BLOB PRIMARY KEY CHECK (length(sha) = 32), etag TEXT, content_type TEXT, body BLOB NOT NULL
        ) STRICT;
        CREATE TABLE conflict (
            n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, seq INTEGER NOT NULL REFERENCES op (seq) ON DELETE CASCADE,
            upstream TEXT NOT NULL, url TEXT NOT NULL, entity TEXT NOT NULL,
            kind TEXT NOT NULL CHECK (kind IN ('edit-edit', 'edit-delete', 'delete-edit', 'create-create')),
            strategy TEXT NOT NULL, detection TEXT NOT NULL CHECK (detection IN ('strong', 'weak')),
            base_sha BLOB, mine_sha BLOB, theirs_sha BLOB, result_sha BLOB,
            opened INTEGER NOT NULL, closed INTEGER,
            resolution TEXT CHECK (resolution IN ('mine', 'theirs', 'both', 'merged')),
            decided_by TEXT CHECK (decided_by IN ('strategy', 'person')), fields TEXT NOT NULL,
            CHECK ((closed IS NULL) = (decided_by IS NULL)), CHECK (closed IS NOT NULL OR resolution IS NULL)
        ) STRICT;
        CREATE UNIQUE INDEX conflict_open ON conflict (seq) WHERE closed IS NULL;
        CREATE INDEX conflict_waiting ON conflict (n, upstream) WHERE closed IS NULL;
        CREATE INDEX conflict_operation ON conflict (seq, n);
        CREATE INDEX conflict_entity ON conflict (upstream, entity, n);
        CREATE INDEX conflict_base ON conflict (base_sha) WHERE base_sha IS NOT NULL;
        CREATE INDEX conflict_mine ON conflict (mine_sha) WHERE mine_sha IS NOT NULL;
        CREATE INDEX conflict_theirs ON conflict (theirs_sha) WHERE theirs_sha IS NOT NULL;
        CREATE INDEX conflict_result ON conflict (result_sha) WHERE result_sha IS NOT NULL;
        CREATE INDEX op_base ON op (base_sha) WHERE base_sha IS NOT NULL;
        CREATE INDEX op_built ON op (base_seq) WHERE base_seq IS NOT NULL;
        """

    /// `rev` is the `key_rev` that an attempt was sent under. A revised operation may have another body.
    private static let revisions = """
        ALTER TABLE attempt ADD COLUMN rev INTEGER NOT NULL DEFAULT 0;
        UPDATE attempt SET rev = (SELECT key_rev FROM op WHERE op.seq = attempt.seq) WHERE seq IN (SELECT seq FROM op WHERE key_rev <> 0);
        CREATE TRIGGER op_blob_moved AFTER UPDATE OF blob_sha ON op WHEN old.blob_sha IS NOT new.blob_sha BEGIN
            UPDATE blob SET refs = refs + 1 WHERE sha = new.blob_sha;
            UPDATE blob SET refs = refs - 1 WHERE sha = old.blob_sha;
        END;
        """

    /// A snapshot is deleted with the last row that references it. References are searched instead of counted: updating a count beside a
    /// body would rewrite the body.
    private static let keeping = """
        CREATE VIEW snapshot_use (sha) AS
            SELECT base_sha FROM op WHERE base_sha IS NOT NULL
            UNION ALL SELECT base_sha FROM conflict WHERE base_sha IS NOT NULL
            UNION ALL SELECT mine_sha FROM conflict WHERE mine_sha IS NOT NULL
            UNION ALL SELECT theirs_sha FROM conflict WHERE theirs_sha IS NOT NULL
            UNION ALL SELECT result_sha FROM conflict WHERE result_sha IS NOT NULL;
        CREATE TRIGGER op_base_went AFTER DELETE ON op WHEN old.base_sha IS NOT NULL BEGIN
            DELETE FROM snapshot WHERE sha = old.base_sha AND NOT EXISTS (SELECT 1 FROM snapshot_use AS used WHERE used.sha = snapshot.sha);
        END;
        CREATE TRIGGER op_base_moved AFTER UPDATE OF base_sha ON op WHEN old.base_sha IS NOT new.base_sha BEGIN
            DELETE FROM snapshot WHERE sha = old.base_sha AND NOT EXISTS (SELECT 1 FROM snapshot_use AS used WHERE used.sha = snapshot.sha);
        END;
        CREATE TRIGGER conflict_went AFTER DELETE ON conflict BEGIN
            DELETE FROM snapshot WHERE sha IN (old.base_sha, old.mine_sha, old.theirs_sha, old.result_sha)
                AND NOT EXISTS (SELECT 1 FROM snapshot_use AS used WHERE used.sha = snapshot.sha);
        END;
        CREATE TRIGGER conflict_moved AFTER UPDATE OF base_sha, mine_sha, theirs_sha, result_sha ON conflict BEGIN
            DELETE FROM snapshot WHERE sha IN (old.base_sha, old.mine_sha, old.theirs_sha, old.result_sha)
                AND NOT EXISTS (SELECT 1 FROM snapshot_use AS used WHERE used.sha = snapshot.sha);
        END;
        """
}
