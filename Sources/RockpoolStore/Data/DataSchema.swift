// The tables of `data.sqlite`; states and their transitions are checked by SQLite itself (outbox.md §1.2, §1.3).
import GRDB
import RockpoolCore

/// The data store's schema. Conflicts, the id map and what else follows come by later migrations.
enum DataSchema {
    /// "RPdt".
    static let identity = DatabaseIdentity(applicationID: 0x5250_6474, migrations: [create], synchronous: .full)

    private static let create: @Sendable (Database) throws -> Void = { db in
        try db.execute(sql: operations)
        try db.execute(sql: rest)
    }

    private static func words<E: CaseIterable & RawRepresentable<String>>(_: E.Type) -> String {
        E.allCases.map { "'\($0.rawValue)'" }.joined(separator: ", ")
    }

    private static var ended: String {
        OperationState.allCases.filter(\.hasEnded).map { "'\($0.rawValue)'" }.joined(separator: ", ")
    }

    /// `headers` and `resp_headers` are in the form of `FieldCodec`; `body` and `resp_body` come last, past what lists read.
    private static var operations: String {
        """
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
            state TEXT NOT NULL CHECK (state IN (\(words(OperationState.self)))),
            reason TEXT CHECK (reason IN (\(words(OperationReason.self)))),
            priority INTEGER NOT NULL DEFAULT 0,
            answered_attempts INTEGER NOT NULL DEFAULT 0, net_attempts INTEGER NOT NULL DEFAULT 0,
            accepted_at INTEGER NOT NULL, first_sent_at INTEGER, next_at INTEGER NOT NULL, lease_until INTEGER,
            ended_at INTEGER, expires_at INTEGER, last_error TEXT,
            superseded_by INTEGER, fixes INTEGER, projected INTEGER NOT NULL DEFAULT 0,
            resp_status INTEGER, resp_headers BLOB, body BLOB, resp_body BLOB,
            CHECK (body IS NULL OR blob_sha IS NULL)
        ) STRICT;
        CREATE INDEX op_due ON op (next_at) WHERE state = 'pending';
        CREATE INDEX op_lane ON op (lane, seq) WHERE state NOT IN (\(ended));
        CREATE INDEX op_ended ON op (ended_at) WHERE ended_at IS NOT NULL;
        CREATE INDEX op_state ON op (state, seq);
        CREATE UNIQUE INDEX op_door ON op (principal, client_key) WHERE client_key IS NOT NULL;
        """
    }

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

    /// Refuses what `OperationMachine.legal` does not have. Made anew when the table has changed with the version.
    static func guardTransitions(_ db: Database) throws {
        let legal = OperationState.allCases.compactMap { from -> String? in
            let to = OperationMachine.legal[from, default: []].map { "'\($0.rawValue)'" }.sorted()
            return to.isEmpty ? nil : "old.state = '\(from.rawValue)' AND new.state IN (\(to.joined(separator: ", ")))"
        }
        let trigger = """
            CREATE TRIGGER op_transition BEFORE UPDATE OF state ON op
            WHEN new.state <> old.state AND NOT (\(legal.joined(separator: " OR ")))
            BEGIN SELECT RAISE(ABORT, 'illegal transition'); END
            """
        let present = try String.fetchOne(db, sql: "SELECT sql FROM sqlite_master WHERE name = 'op_transition'")
        guard present != trigger else { return }
        try db.execute(sql: "DROP TRIGGER IF EXISTS op_transition; \(trigger)")
    }
}
