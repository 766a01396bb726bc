// Version 4 of the cache's tables: several parts of one variant side by side (RFC 9111 §3.4).
import GRDB
import HTTPTypes
import RockpoolCore

extension CacheSchema {
    /// Adds `part`, the offset of a part in the whole body; -1 for a whole body.
    ///
    /// Up to version 3 a body could be completed wrongly from a part (a chunk was duplicated where the transfer was resumed), and the rows
    /// do not record which bodies were completed. So the migration removes all parts and every whole body that may have been completed from
    /// one: any with a strong entity tag and long enough for its transfer to have been aborted.
    static let addParts: @Sendable (Database) throws -> Void = { db in
        var doubtful: [Int64] = []
        let wholes = try Row.fetchCursor(
            db, sql: "SELECT id, fields FROM entry WHERE status = 200 AND body_length > ?", arguments: [ClientAbortPolicy.smallRest.bytes])
        while let row = try wholes.next() {
            var columns = RowReader(row)
            let id: Int64 = try columns.next()
            let fields = FieldCodec.decode(try columns.next()) ?? [:]
            if fields[.eTag].flatMap({ EntityTag($0) })?.isStrong == true { doubtful.append(id) }
        }
        for id in doubtful { try db.execute(sql: "DELETE FROM entry WHERE id = ?", arguments: [id]) }
        try db.execute(
            sql: """
                DELETE FROM entry WHERE status = 206;
                ALTER TABLE entry ADD COLUMN part INTEGER NOT NULL DEFAULT -1 CHECK (part >= -1);
                DROP INDEX entry_key;
                CREATE UNIQUE INDEX entry_key ON entry (key_hash, variant, part);
                """)
    }
}
