// Version 10 of the cache's tables: the order in which entries were asked for (docs/outbox.md#ticks).
import GRDB
import RockpoolCore

extension CacheSchema {
    /// Adds `asked`, the tick of an entry's request, and `run`, the number of the last run of the server. The times of before take the place of
    /// ticks, those of own writes too.
    static let addTicks: @Sendable (Database) throws -> Void = { db in
        let last = Ticks.runLength - 1
        try db.execute(
            sql: """
                ALTER TABLE entry ADD COLUMN asked INTEGER NOT NULL DEFAULT 0;
                UPDATE entry SET asked = min(request_time, \(last)), own_write_at = min(own_write_at, \(last));
                CREATE TABLE run (number INTEGER NOT NULL) STRICT;
                INSERT INTO run VALUES (0);
                """)
    }
}
