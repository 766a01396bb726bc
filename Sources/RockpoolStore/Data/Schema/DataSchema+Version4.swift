// Version 4 of `data.sqlite`: the operations that count against the share of the unproved (docs/reference/behaviour.md#shares). History,
// never edited.
import GRDB

extension DataSchema {
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
}
