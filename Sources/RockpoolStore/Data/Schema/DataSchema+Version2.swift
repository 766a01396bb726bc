// Version 2 of `data.sqlite`: places in lanes, dependencies, local ids, identities, cursors (docs/outbox.md#schema). History, never edited.
import GRDB

extension DataSchema {
    /// SQLite cannot alter a CHECK: `op` is recreated, with `attempt` that refers to it, and every row is copied.
    static let version2: @Sendable (Database) throws -> Void = { db in
        try db.execute(sql: operations)
        try db.execute(sql: carriedOver)
        try db.execute(sql: around)
        try db.execute(sql: triggers)
    }

    /// `reason` is checked by a trigger that is recreated from the enumeration in code. `place` is the order within a lane: an edited
    /// operation takes the place of the one it replaces. `body` and `resp_body` come last, after the columns that lists read.
    private static let operations = """
        CREATE TABLE op_next (
            seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, place INTEGER NOT NULL,
            idem_key TEXT NOT NULL, key_origin TEXT NOT NULL CHECK (key_origin IN ('client', 'proxy')),
            key_rev INTEGER NOT NULL DEFAULT 0, client_key TEXT, fingerprint BLOB NOT NULL CHECK (length(fingerprint) = 32),
            principal TEXT NOT NULL,
            upstream TEXT NOT NULL, origin TEXT NOT NULL, method TEXT NOT NULL, target TEXT NOT NULL,
            entity TEXT, entity_type TEXT, entity_id TEXT, local_id TEXT, lane TEXT NOT NULL, group_name TEXT,
            intent TEXT NOT NULL CHECK (intent IN ('create', 'replace', 'patch', 'delete', 'action')),
            headers BLOB NOT NULL, blob_sha BLOB, body_len INTEGER NOT NULL CHECK (body_len >= 0), content_type TEXT,
            base_sha BLOB, base_etag TEXT, base_version TEXT, base_seq INTEGER,
            state TEXT NOT NULL CHECK (state IN ('pending', 'inflight', 'uncertain', 'delivered', 'conflicted', 'parked', 'dead',
                'cancelled', 'superseded')),
            reason TEXT, priority INTEGER NOT NULL DEFAULT 0, no_merge INTEGER NOT NULL DEFAULT 0 CHECK (no_merge IN (0, 1)),
            answered_attempts INTEGER NOT NULL DEFAULT 0, net_attempts INTEGER NOT NULL DEFAULT 0, probes INTEGER NOT NULL DEFAULT 0,
            accepted_at INTEGER NOT NULL, first_sent_at INTEGER, next_at INTEGER NOT NULL, ended_at INTEGER, expires_at INTEGER,
            warned_at INTEGER, last_error TEXT, superseded_by INTEGER, fixes INTEGER,
            resp_status INTEGER, resp_headers BLOB, body BLOB, resp_body BLOB,
            CHECK (body IS NULL OR blob_sha IS NULL)
        ) STRICT;
        CREATE TABLE attempt_next (
            seq INTEGER NOT NULL REFERENCES op_next (seq) ON DELETE CASCADE, n INTEGER NOT NULL,
            started INTEGER NOT NULL, ended INTEGER, fresh_conn INTEGER, bytes_sent INTEGER, bytes_total INTEGER,
            status INTEGER, error TEXT, evidence TEXT CHECK (evidence IN ('no', 'maybe', 'yes')), PRIMARY KEY (seq, n)
        ) STRICT, WITHOUT ROWID;
        """

    private static let carriedOver = """
        INSERT INTO op_next (seq, id, place, idem_key, key_origin, key_rev, client_key, fingerprint, principal, upstream, origin, method,
                target, entity, entity_type, entity_id, lane, intent, headers, blob_sha, body_len, content_type, base_sha, base_etag,
                base_version, base_seq, state, reason, priority, answered_attempts, net_attempts, accepted_at, first_sent_at, next_at,
                ended_at, expires_at, last_error, superseded_by, fixes, resp_status, resp_headers, body, resp_body)
            SELECT seq, id, seq, idem_key, key_origin, key_rev, client_key, fingerprint, principal, upstream, origin, method,
                target, entity, entity_type, entity_id, lane, intent, headers, blob_sha, body_len, content_type, base_sha, base_etag,
                base_version, base_seq, state, reason, priority, answered_attempts, net_attempts, accepted_at, first_sent_at, next_at,
                ended_at, expires_at, last_error, superseded_by, fixes, resp_status, resp_headers, body, resp_body FROM op;
        INSERT INTO attempt_next SELECT seq, n, started, ended, fresh_conn, bytes_sent, bytes_total, status, error, evidence FROM attempt;
        UPDATE sqlite_sequence SET seq = coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'op'), seq) WHERE name = 'op_next';
        INSERT INTO sqlite_sequence SELECT 'op_next', seq FROM sqlite_sequence
            WHERE name = 'op' AND NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'op_next');
        DROP TABLE attempt;
        DROP TRIGGER op_went;
        DROP TABLE op;
        ALTER TABLE op_next RENAME TO op;
        ALTER TABLE attempt_next RENAME TO attempt;
        CREATE INDEX op_lane ON op (lane, place) WHERE state NOT IN ('delivered', 'cancelled', 'superseded');
        CREATE INDEX op_entity ON op (upstream, entity, seq) WHERE entity IS NOT NULL;
        CREATE INDEX op_ended ON op (ended_at) WHERE ended_at IS NOT NULL;
        CREATE INDEX op_state ON op (state, seq);
        CREATE UNIQUE INDEX op_door ON op (principal, client_key) WHERE client_key IS NOT NULL;
        """

    /// `id_map.server_id` is NULL until the create is delivered. `proved` and `credential` contain names and ciphertext, never a secret.
    private static let around = """
        CREATE TABLE op_dep (
            seq INTEGER NOT NULL REFERENCES op (seq) ON DELETE CASCADE, needs INTEGER NOT NULL,
            kind TEXT NOT NULL CHECK (kind IN ('id', 'etag', 'parent', 'explicit', 'group')), PRIMARY KEY (seq, needs)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX op_needed ON op_dep (needs);
        CREATE TABLE op_ref (
            seq INTEGER NOT NULL REFERENCES op (seq) ON DELETE CASCADE, local_id TEXT NOT NULL, place TEXT NOT NULL,
            PRIMARY KEY (seq, local_id, place)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE id_map (
            local_id TEXT PRIMARY KEY, upstream TEXT NOT NULL, entity_type TEXT, server_id TEXT, is_number INTEGER NOT NULL DEFAULT 0,
            server_url TEXT, created_by INTEGER NOT NULL, mapped_at INTEGER
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX id_server ON id_map (upstream, entity_type, server_id) WHERE server_id IS NOT NULL;
        CREATE TABLE proved (token BLOB PRIMARY KEY, principal TEXT NOT NULL, at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        CREATE INDEX proved_at ON proved (at);
        CREATE TABLE credential (
            principal TEXT PRIMARY KEY, upstream TEXT NOT NULL, sealed BLOB NOT NULL, at INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE cursor (
            scope TEXT PRIMARY KEY, value TEXT, full_at INTEGER, synced_at INTEGER, server_count INTEGER
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE tombstone (
            upstream TEXT NOT NULL, entity_type TEXT NOT NULL, entity_id TEXT NOT NULL, at INTEGER NOT NULL,
            PRIMARY KEY (upstream, entity_type, entity_id)
        ) STRICT, WITHOUT ROWID;
        """

    private static let triggers = """
        CREATE TRIGGER op_came AFTER INSERT ON op WHEN new.blob_sha IS NOT NULL BEGIN
            UPDATE blob SET refs = refs + 1 WHERE sha = new.blob_sha;
        END;
        CREATE TRIGGER op_went AFTER DELETE ON op WHEN old.blob_sha IS NOT NULL BEGIN
            UPDATE blob SET refs = refs - 1 WHERE sha = old.blob_sha;
        END;
        CREATE TRIGGER op_delivered AFTER UPDATE OF state ON op WHEN new.state = 'delivered' AND old.state <> 'delivered' BEGIN
            UPDATE total SET value = value + 1 WHERE name = 'delivered';
        END;
        """
}
