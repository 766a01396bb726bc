// The tables that a fleet shares, and the SQL that follows from their columns (docs/fleet.md#shared).
import GRDB

/// A table whose rows every node has.
struct ReplicatedTable: Sendable {
    let name: String
    /// The columns of the primary key.
    let keys: [String]
    /// The other columns that are exchanged as one part.
    let columns: [String]
    /// Columns with bodies: a part each, so that a change of the rest does not exchange them again.
    let heavy: [String]
    /// SQL for the rows that are shared, with `ROW` for the row; nil for all.
    let condition: String?

    /// The heavy columns and the conditions that are not in the schema. `blob` has rows of its own (`BlobExchange`).
    private static let known: [(name: String, heavy: [String], condition: String?)] = [
        ("op", ["body", "resp_body"], nil), ("attempt", [], nil), ("op_dep", [], nil), ("op_ref", [], nil), ("id_map", [], nil),
        ("snapshot", [], nil), ("conflict", [], nil), ("sync_log", [], nil), ("unproved", [], nil), ("proved", [], nil),
        ("total", [], "(ROW.name = 'delivered' OR ROW.name LIKE 'credentials at %')"), ("fleet_claim", [], nil), ("fleet_stale", [], nil),
    ]

    /// Columns with moments in milliseconds, which are exchanged in the database's time.
    private static let moments: [String: Set<String>] = [
        "op": ["accepted_at", "first_sent_at", "next_at", "ended_at", "expires_at", "warned_at"], "attempt": ["started", "ended"],
        "id_map": ["mapped_at"], "conflict": ["opened", "closed"], "sync_log": ["at"], "proved": ["at"],
        "fleet_stale": ["at"],
    ]

    /// Returns the row with its moments moved by `offset` milliseconds.
    func moving(_ row: RowBytes, by offset: Int64) -> RowBytes {
        guard offset != 0, let names = Self.moments[name] else { return row }
        return RowBytes(
            row.values.map { column in
                guard names.contains(column.name), let moment = Int64.fromDatabaseValue(column.value) else { return column }
                return (column.name, (moment + offset).databaseValue)
            })
    }

    /// The columns that each node has for itself: the order of what it has asked and been answered.
    private static let own: Set<String> = ["sent_tick", "ended_tick"]

    /// The columns in which a row of another table names the operation that it belongs to, beside its key.
    static let owners = ["sync_log": "seq", "id_map": "created_by", "conflict": "seq"]

    /// The columns in which an operation names another one.
    static let references: Set<String> = ["base_seq", "superseded_by", "fixes"]

    /// The tables with numbers from `sqlite_sequence`.
    static let numbered = ["op", "sync_log", "conflict"]

    /// The column of a numbered table that has the number.
    static func number(of table: String) -> String { table == "op" ? "seq" : "n" }

    static func all(in db: Database) throws -> [ReplicatedTable] {
        try known.map { table in
            let keys = try db.primaryKey(table.name).columns
            let names = try db.columns(in: table.name).map(\.name).filter {
                !keys.contains($0) && !table.heavy.contains($0) && !own.contains($0)
            }
            return ReplicatedTable(name: table.name, keys: keys, columns: names, heavy: table.heavy, condition: table.condition)
        }
    }

    /// The columns of a part: 0 is the row without its heavy columns.
    func columns(ofPart part: Int) -> [String] { part == 0 ? keys + columns : [heavy[part - 1]] }

    // MARK: capture

    /// Temporary triggers that note in `fleet_change` which parts of which rows have changed. The same may be noted twice: within a trigger,
    /// the conflict clause of the outer statement would replace an `OR IGNORE`.
    var capture: String {
        func note(_ row: String, part: Int, when condition: String? = nil) -> String {
            let marks = (0..<3).map { $0 < keys.count ? "\(row).\(keys[$0])" : "''" }.joined(separator: ", ")
            let conditions = [condition, self.condition?.replacing("ROW", with: row)].compactMap(\.self)
            let filter = conditions.isEmpty ? "" : " WHERE \(conditions.joined(separator: " AND "))"
            return "INSERT INTO fleet_change (tbl, part, k1, k2, k3) SELECT '\(name)', \(part), \(marks)\(filter);"
        }
        let bodies = heavy.indices.map { note("new", part: $0 + 1, when: "new.\(heavy[$0]) IS NOT NULL") }.joined(separator: "\n")
        let isMoved = keys.map { "old.\($0) IS NOT new.\($0)" }.joined(separator: " OR ")
        let parts = heavy.indices.map { note("new", part: $0 + 1) }.joined(separator: "\n")
        let changed = heavy.enumerated().map { index, column in
            """
            CREATE TEMP TRIGGER fleet_\(name)_\(column) AFTER UPDATE OF \(column) ON main.\(name)
                WHEN old.\(column) IS NOT new.\(column) BEGIN \(note("new", part: index + 1)) END;
            """
        }
        return """
            CREATE TEMP TRIGGER fleet_\(name)_came AFTER INSERT ON main.\(name) BEGIN
                \(note("new", part: 0)) \(bodies)
            END;
            CREATE TEMP TRIGGER fleet_\(name)_went AFTER DELETE ON main.\(name) BEGIN \(note("old", part: 0)) END;
            CREATE TEMP TRIGGER fleet_\(name)_changed AFTER UPDATE ON main.\(name) BEGIN \(note("new", part: 0)) END;
            CREATE TEMP TRIGGER fleet_\(name)_moved AFTER UPDATE OF \(keys.joined(separator: ", ")) ON main.\(name) WHEN \(isMoved) BEGIN
                \(note("old", part: 0)) \(parts)
            END;
            \(changed.joined(separator: "\n"))
            """
    }

    /// Notes every row of the table as changed.
    var captureAll: String {
        let marks = (0..<3).map { $0 < keys.count ? keys[$0] : "''" }.joined(separator: ", ")
        let filter = condition.map { " WHERE " + $0.replacing("ROW.", with: "") } ?? ""
        let parts = [0] + heavy.indices.map { $0 + 1 }
        return parts.map { part in
            let isThere = part == 0 ? filter : " WHERE \(heavy[part - 1]) IS NOT NULL"
            return """
                INSERT INTO fleet_change (tbl, part, k1, k2, k3) SELECT '\(name)', \(part), \(marks) FROM main.\(name)\(isThere);
                """
        }.joined(separator: "\n")
    }

    // MARK: rows

    var isKey: String { keys.map { "\($0) = ?" }.joined(separator: " AND ") }

    func selection(ofPart part: Int) -> String {
        "SELECT \(columns(ofPart: part).joined(separator: ", ")) FROM main.\(name) WHERE \(isKey)"
    }

    /// Puts a row with these columns in place, whether it is there or not.
    func insertion(of names: [String]) -> String {
        let changes = names.filter { !keys.contains($0) }.map { "\($0) = excluded.\($0)" }.joined(separator: ", ")
        let marks = Array(repeating: "?", count: names.count).joined(separator: ", ")
        return """
            INSERT INTO main.\(name) (\(names.joined(separator: ", "))) VALUES (\(marks)) ON CONFLICT (\(keys.joined(separator: ", ")))
                DO \(changes.isEmpty ? "NOTHING" : "UPDATE SET \(changes)")
            """
    }

    func update(ofPart part: Int) -> String { "UPDATE main.\(name) SET \(heavy[part - 1]) = ? WHERE \(isKey)" }

    var deletion: String { "DELETE FROM main.\(name) WHERE \(isKey)" }
}
