// Version 5 of the cache's tables: bodies that lie sealed, and no credential among what selects a variant.
import GRDB
import HTTPTypes
import RockpoolCore

extension CacheSchema {
    /// SQLite cannot alter a CHECK; making `entry` anew would copy every body. So its text is changed where it stands, as the page on
    /// ALTER TABLE allows for constraints that only become wider (https://www.sqlite.org/lang_altertable.html, "Making Other Kinds Of
    /// Table Schema Changes"). Variants that were selected by a credential hold its value: they go.
    static let addSealing: @Sendable (Database) throws -> Void = { db in
        for name in SecretFields.all {
            try db.execute(sql: "DELETE FROM entry WHERE instr(char(10) || variant, char(10) || ?)", arguments: ["\(name.canonicalName): "])
        }
        let version = try Int.fetchOne(db, sql: "PRAGMA schema_version") ?? 0
        try db.execute(
            sql: """
                PRAGMA writable_schema = ON;
                UPDATE sqlite_schema SET sql = replace(sql, 'CHECK (coding IN (0, 1))', 'CHECK (coding IN (0, 1, 2, 3))')
                    WHERE type = 'table' AND name IN ('entry', 'body');
                PRAGMA schema_version = \(version + 1);
                PRAGMA writable_schema = RESET;
                """)
    }
}
