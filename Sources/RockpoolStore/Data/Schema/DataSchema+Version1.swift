// Version 1 of `data.sqlite`, as released: history, never edited (docs/outbox.md#schema, docs/outbox.md#states).
import GRDB

extension DataSchema {
    static let version1: @Sendable (Database) throws -> Void = { db in
        try db.execute(sql: operations)
        try db.execute(sql: rest)
    }

    /// `headers` and `resp_headers` are in the form of `FieldCodec`; `body` and `resp_body` come last, after the columns that lists read.
    private static let operations = """
        CREATE TABLE op (
            seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
            idem_key TEXT NOT NULL, key_origin TEXT NOT NULL CHECK (key_origin IN ('client', 'proxy')),
            key_rev INTEGER NOT NULL DEFAULT 0, client_key TEXT, fingerprint BLOB NOT NULL CHECK (length(fingerprint) = 32),
            principal TEXT NOT NULL, auth_profile TEXT,
            upstream TEXT NOT NULL, origin TEXT NOT NULL, method TEXT NOT NULL, target TEXT NOT NULL, route TEXT,
            entity TEXT, entity_type TEXT, entity_id TEXT, lane TEXT NOT NULL,
            intent TEXT NOT NULL CHECK (intent IN ('create', 'replace', 'patch', 'delete', 'action')),
            headers BLOB NOT NULL, blob_sha BLOB, body_len INTEGER NOT NULL CHECK (body_len >= 0), content_type TEXT,
            base_sha BLOB, base_etag TEXT, base_version TEXT, base_seq INTEGER,
            state TEXT NOT NULL CHECK (state IN ('pending', 'inflight', 'uncertain', 'delivered', 'conflicted', 'parked', 'dead',
                'cancelled', 'superseded')),
            reason TEXT CHECK (reason IN ('rejected', 'exhausted', 'expired', 'unmapped', 'too_old', 'auth', 'paused', 'redirected',
                'lost_answer', 'crashed',
                'edit-edit', 'edit-delete', 'discarded', 'cancelled', 'accepted', 'already_gone')),
            priority INTEGER NOT NULL DEFAULT 0,
            answered_attempts INTEGER NOT NULL DEFAULT 0, net_attempts INTEGER NOT NULL DEFAULT 0,
            accepted_at INTEGER NOT NULL, first_sent_at INTEGER, next_at INTEGER NOT NULL, lease_until INTEGER,
            ended_at INTEGER, expires_at INTEGER, last_error TEXT,
            superseded_by INTEGER, fixes INTEGER, projected INTEGER NOT NULL DEFAULT 0,
            resp_status INTEGER, resp_headers BLOB, body BLOB, resp_body BLOB,
            CHECK (body IS NULL OR blob_sha IS NULL)
        ) STRICT;
        CREATE INDEX op_due ON op (next_at) WHERE state = 'pending';
        CREATE INDEX op_lane ON op (lane, seq) WHERE state NOT IN ('delivered', 'cancelled', 'superseded');
        CREATE INDEX op_ended ON op (ended_at) WHERE ended_at IS NOT NULL;
        CREATE INDEX op_state ON op (state, seq);
        CREATE UNIQUE INDEX op_door ON op (principal, client_key) WHERE client_key IS NOT NULL;
        """

    private static let rest = """
        CREATE TABLE attempt (
            seq INTEGER NOT NULL REFERENCES op (seq) ON DELETE CASCADE, n INTEGER NOT NULL,
            started INTEGER NOT NULL, ended INTEGER, fresh_conn INTEGER, bytes_sent INTEGER, bytes_total INTEGER,
            status INTEGER, error TEXT, evidence TEXT CHECK (evidence IN ('no', 'maybe', 'yes')), PRIMARY KEY (seq, n)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE sync_log (
            n INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, seq INTEGER, event TEXT NOT NULL, detail TEXT
        ) STRICT;
        CREATE TABLE blob (
            sha BLOB PRIMARY KEY, length INTEGER NOT NULL,
            refs INTEGER NOT NULL DEFAULT 0 CHECK (refs >= 0)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX blob_unused ON blob (sha) WHERE refs = 0;
        CREATE TABLE total (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        INSERT INTO total VALUES ('delivered', 0);
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
