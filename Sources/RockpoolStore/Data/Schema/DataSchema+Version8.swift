// Version 8 of `data.sqlite`: the order in which operations were sent and have ended (docs/outbox.md#ticks). History, never edited.
import GRDB
import RockpoolCore

extension DataSchema {
    /// The times of before take the place of ticks.
    static let version8: @Sendable (Database) throws -> Void = { db in
        let last = Ticks.runLength - 1
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
