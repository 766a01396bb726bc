// The number of a new row (docs/fleet.md#away).

/// SQL for the next number of a table with AUTOINCREMENT. SQLite itself gives one beyond every row that is there; this is one beyond the last
/// that was given, also while a node of a fleet keeps rows with numbers of a range of their own.
enum NextNumber {
    static func sql(of table: String) -> String { "coalesce((SELECT seq + 1 FROM sqlite_sequence WHERE name = '\(table)'), 1)" }
}
