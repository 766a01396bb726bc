// The tables of `data.sqlite`; SQLite itself checks states and their transitions (docs/outbox.md#schema, docs/outbox.md#states). Released
// versions are history, never edited.
import GRDB
import RockpoolCore

/// The data store's schema, one migration per version.
enum DataSchema {
    /// "RPdt".
    static let identity = DatabaseIdentity(
        applicationID: 0x5250_6474, migrations: [version1, version2, version3, version4, version5, version6, version7, version8],
        synchronous: .full)

    /// Creates triggers that reject transitions outside `OperationMachine.legal` and reasons outside `OperationReason`. They are recreated
    /// when either has changed with the version.
    static func guardTransitions(in db: Database) throws {
        try guardOperations(in: db, named: "op_transition", "UPDATE OF state", when: "new.state <> old.state AND NOT (\(legal))")
        let reasons = OperationReason.allCases.map { "'\($0.rawValue)'" }.joined(separator: ", ")
        try guardOperations(in: db, named: "op_reason", "UPDATE OF reason", when: "new.reason NOT IN (\(reasons))")
        try guardOperations(in: db, named: "op_first_reason", "INSERT", when: "new.reason NOT IN (\(reasons))")
    }

    /// Creates the indexes by which a new write finds what it waits for among all open writes: those to the whole of its collection, the
    /// first ones of its lane by principal and state, and equal ones (docs/outbox.md#repeats). They came without a version, because an older Rockpool can use and keep them.
    static func indexOpenWrites(in db: Database) throws {
        try db.execute(
            sql: """
                CREATE INDEX IF NOT EXISTS op_standing ON op (lane, upstream, principal, state, place)
                    WHERE \(OperationState.isOpen);
                CREATE INDEX IF NOT EXISTS op_whole_collection ON op (upstream, entity_type, principal, seq)
                    WHERE entity_id IS NULL AND \(OperationState.isOpen);
                CREATE INDEX IF NOT EXISTS op_equal ON op (fingerprint) WHERE method = 'POST' AND \(OperationState.isOpen)
                """)
    }

    private static var legal: String {
        OperationState.allCases.compactMap { from -> String? in
            let to = OperationMachine.legal[from, default: []].map { "'\($0.rawValue)'" }.sorted()
            return to.isEmpty ? nil : "old.state = '\(from.rawValue)' AND new.state IN (\(to.joined(separator: ", ")))"
        }.joined(separator: " OR ")
    }

    private static func guardOperations(in db: Database, named name: String, _ change: String, when condition: String) throws {
        let condition = ConstantLists.unrolled(condition)
        let trigger = "CREATE TRIGGER \(name) BEFORE \(change) ON op WHEN \(condition) BEGIN SELECT RAISE(ABORT, 'illegal \(name)'); END"
        let present = try String.fetchOne(db, sql: "SELECT sql FROM sqlite_master WHERE name = ?", arguments: [name])
        guard present != trigger else { return }
        try db.execute(sql: "DROP TRIGGER IF EXISTS \(name); \(trigger)")
    }
}

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

    // Version 2: places in lanes, dependencies, local ids, identities, cursors.

    /// SQLite cannot alter a CHECK: `op` is recreated, with `attempt` that refers to it, and every row is copied.
    static let version2: @Sendable (Database) throws -> Void = { db in
        try db.execute(sql: placedOperations)
        try db.execute(sql: carriedOver)
        try db.execute(sql: around)
        try db.execute(sql: triggers)
    }

    /// `reason` is checked by a trigger that is recreated from the enumeration in code. `place` is the order within a lane: an edited
    /// operation takes the place of the one it replaces. `body` and `resp_body` come last, after the columns that lists read.
    private static let placedOperations = """
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

    // Version 3: conflicts, and the base representations of conflicts and operations (docs/outbox.md#merging).

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

    // Version 4: the operations that count against the share of the unproved (docs/reference/behaviour.md#shares).

    static let version4: @Sendable (Database) throws -> Void = { db in
        try db.execute(sql: unproved)
    }

    /// A table of its own: as a column of `op` behind the bodies, it would make every list read through them.
    private static let unproved = """
        CREATE TABLE unproved (
            seq INTEGER PRIMARY KEY REFERENCES op (seq) ON DELETE CASCADE, principal TEXT NOT NULL
        ) STRICT;
        CREATE INDEX unproved_principal ON unproved (principal);
        """

    // Version 5: writes to a collection and to its members wait for each other (docs/outbox.md#dependencies).

    /// Widens the CHECK of `op_dep.kind` where it stands, as the page on ALTER TABLE allows for constraints that only become wider
    /// (https://www.sqlite.org/lang_altertable.html, "Making Other Kinds Of Table Schema Changes").
    static let version5: @Sendable (Database) throws -> Void = { db in
        let version = try Int.fetchOne(db, sql: "PRAGMA schema_version") ?? 0
        try db.execute(
            sql: """
                PRAGMA writable_schema = ON;
                UPDATE sqlite_schema SET sql = replace(sql, '''explicit'', ''group'')', '''explicit'', ''group'', ''collection'')')
                    WHERE type = 'table' AND name = 'op_dep';
                PRAGMA schema_version = \(version + 1);
                PRAGMA writable_schema = RESET;
                CREATE INDEX op_collection ON op (upstream, entity_type, seq) WHERE state NOT IN ('delivered', 'cancelled', 'superseded');
                """)
    }

    // Version 6: live writes that are under way (docs/outbox.md#live-writes).

    static let version6: @Sendable (Database) throws -> Void = { db in
        try db.execute(sql: liveWrites)
    }

    /// The columns have the names and values of those of `op`. `n` is a slot, used again when its row is gone; `token` names one use of it.
    /// A table of its own: a row of `op` would hold its lane. `body` comes last, after the columns that are read at a start.
    private static let liveWrites = """
        CREATE TABLE live_write (
            n INTEGER PRIMARY KEY, token INTEGER NOT NULL, unproved INTEGER NOT NULL CHECK (unproved IN (0, 1)),
            id TEXT NOT NULL, idem_key TEXT NOT NULL, key_origin TEXT NOT NULL CHECK (key_origin IN ('client', 'proxy')), client_key TEXT,
            fingerprint BLOB NOT NULL CHECK (length(fingerprint) = 32), principal TEXT NOT NULL,
            upstream TEXT NOT NULL, origin TEXT NOT NULL, method TEXT NOT NULL, target TEXT NOT NULL, intent TEXT NOT NULL,
            headers BLOB NOT NULL, content_type TEXT, blob_sha BLOB, body_len INTEGER NOT NULL CHECK (body_len >= 0),
            lane TEXT NOT NULL, group_name TEXT, priority INTEGER NOT NULL, no_merge INTEGER NOT NULL CHECK (no_merge IN (0, 1)),
            entity TEXT, entity_type TEXT, entity_id TEXT, local_id TEXT, base_etag TEXT,
            accepted_at INTEGER NOT NULL, expires_at INTEGER, body BLOB,
            CHECK (body IS NULL OR blob_sha IS NULL)
        ) STRICT;
        CREATE TRIGGER live_write_came AFTER INSERT ON live_write WHEN new.blob_sha IS NOT NULL BEGIN
            UPDATE blob SET refs = refs + 1 WHERE sha = new.blob_sha;
        END;
        CREATE TRIGGER live_write_went AFTER DELETE ON live_write WHEN old.blob_sha IS NOT NULL BEGIN
            UPDATE blob SET refs = refs - 1 WHERE sha = old.blob_sha;
        END;
        """

    // Version 7: which program wrote, and what it had seen (docs/outbox.md#sight).

    static let version7: @Sendable (Database) throws -> Void = { db in
        try db.execute(sql: "ALTER TABLE op ADD COLUMN viewer INTEGER; ALTER TABLE op ADD COLUMN base_seen TEXT")
    }

    // Version 8: the order in which operations were sent and have ended (docs/outbox.md#ticks).

    /// The times of before take the place of ticks.
    static let version8: @Sendable (Database) throws -> Void = { db in
        let last = Ticks.runTickCount - 1
        try db.execute(
            sql: """
                ALTER TABLE op ADD COLUMN sent_tick INTEGER;
                ALTER TABLE op ADD COLUMN ended_tick INTEGER;
                UPDATE op SET sent_tick = min(first_sent_at, \(last)), ended_tick = min(ended_at, \(last));
                CREATE TABLE run (number INTEGER NOT NULL) STRICT;
                INSERT INTO run VALUES (0);
                """)
    }
}
