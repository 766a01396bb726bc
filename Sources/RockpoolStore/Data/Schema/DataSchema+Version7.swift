// Version 7 of `data.sqlite`: which program wrote, and what it had seen (docs/outbox.md#sight). History, never edited.
import GRDB

extension DataSchema {
    static let version7: @Sendable (Database) throws -> Void = { db in
        try db.execute(sql: "ALTER TABLE op ADD COLUMN viewer INTEGER; ALTER TABLE op ADD COLUMN base_seen TEXT")
    }
}
