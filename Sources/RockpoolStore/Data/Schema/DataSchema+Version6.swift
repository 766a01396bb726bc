// Version 6 of `data.sqlite`: live writes that are under way (docs/outbox.md#live-writes). History, never edited.
import GRDB

extension DataSchema {
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
}
