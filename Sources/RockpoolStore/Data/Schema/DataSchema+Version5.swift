// Version 5 of `data.sqlite`: writes to a collection and to its members wait for each other (docs/outbox.md#dependencies). History, never
// edited.
import GRDB

extension DataSchema {
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
}
