// The bytes of the entries of each origin that has a quota, counted by triggers on the writer's own connection
// (docs/storage.md#limits-and-shares *upstreams*).
import GRDB

/// Sums of stored entries by origin, and the order in which an origin's entries leave. Without a quota there is neither, and no cost.
enum OriginSums {
    /// Counts the entries of these origins from now on, and of no others. Call it on the writing connection.
    static func begin(for origins: some Collection<String>, in db: Database) throws {
        try db.execute(
            sql: """
                DROP TRIGGER IF EXISTS temp.origin_entry_came;
                DROP TRIGGER IF EXISTS temp.origin_entry_went;
                DROP TRIGGER IF EXISTS temp.origin_entry_changed;
                DROP TABLE IF EXISTS temp.origin_sum;
                """)
        guard !origins.isEmpty else { return try db.execute(sql: "DROP INDEX IF EXISTS entry_origin") }
        try db.execute(
            sql: """
                CREATE INDEX IF NOT EXISTS entry_origin ON entry (origin, used_at, bytes);
                CREATE TEMP TABLE origin_sum (origin TEXT PRIMARY KEY, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;
                CREATE TEMP TRIGGER origin_entry_came AFTER INSERT ON main.entry BEGIN
                    UPDATE origin_sum SET bytes = bytes + new.bytes WHERE origin = new.origin;
                END;
                CREATE TEMP TRIGGER origin_entry_went AFTER DELETE ON main.entry BEGIN
                    UPDATE origin_sum SET bytes = bytes - old.bytes WHERE origin = old.origin;
                END;
                CREATE TEMP TRIGGER origin_entry_changed AFTER UPDATE OF bytes ON main.entry BEGIN
                    UPDATE origin_sum SET bytes = bytes + new.bytes - old.bytes WHERE origin = new.origin;
                END;
                """)
        for origin in origins {
            try db.execute(
                sql: "INSERT INTO origin_sum SELECT ?1, (SELECT coalesce(sum(bytes), 0) FROM entry WHERE origin = ?1)", arguments: [origin])
        }
    }

    /// Returns the bytes of the entries of an origin with a quota; 0 for any other. Call it on the connection that `begin` was called on.
    static func bytes(of origin: String, in db: Database) throws -> Int64 {
        try Int64.fetchOne(db.cachedStatement(sql: "SELECT bytes FROM origin_sum WHERE origin = ?"), arguments: [origin]) ?? 0
    }
}
