// Version 4 of the cache's tables: several parts of one variant side by side (RFC 9111 §3.4).
import GRDB
import HTTPTypes
import RockpoolCore

extension CacheSchema {
    /// `part` is where the bytes of a part begin in the whole; -1 for a whole.
    ///
    /// Up to version 3 a body could be completed wrongly from a part (a chunk stood twice where it was resumed). Nothing tells which
    /// bodies were completed. So all parts go, and every whole that may have been made of one: it has a strong tag, and is so long that
    /// its transfer may have been given up.
    static let addParts: @Sendable (Database) throws -> Void = { db in
        var doubtful: [Int64] = []
        let wholes = try Row.fetchCursor(
            db, sql: "SELECT id, fields FROM entry WHERE status = 200 AND body_length > ?", arguments: [Departure.smallRest.bytes])
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
