// Version 4 of `data.sqlite`: which operations count against the share of the unproved (contract §7). History, never edited.
import GRDB

extension DataSchema {
    static let version4: @Sendable (Database) throws -> Void = { db in
        try db.execute(sql: unproved)
    }

    /// Beside `op`, not in it: a column behind the bodies would have every list read through them.
    private static let unproved = """
        CREATE TABLE unproved (
            seq INTEGER PRIMARY KEY REFERENCES op (seq) ON DELETE CASCADE, principal TEXT NOT NULL
        ) STRICT;
        CREATE INDEX unproved_principal ON unproved (principal);
        """
}
