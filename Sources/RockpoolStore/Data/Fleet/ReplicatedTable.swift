// The tables that a fleet shares, and the SQL that follows from their columns (docs/fleet.md#shared).
import FoundationEssentials
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

    // MARK: - Capture

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

    // MARK: - Rows

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

// MARK: - Rows as bytes

/// A row of SQLite as bytes: the form in which nodes exchange rows. Columns are named, so that a column more or less needs no other form.
/// Encoded: for each its name, one byte for its type, and the value; lengths are four bytes, numbers big-endian.
struct RowBytes: Sendable {
    var values: [(name: String, value: DatabaseValue)]

    init(_ values: [(name: String, value: DatabaseValue)]) { self.values = values }

    /// The value of a column; NULL for one that is not there.
    subscript(_ name: String) -> DatabaseValue {
        get { values.first { $0.name == name }?.value ?? .null }
        set { values = values.filter { $0.name != name } + [(name, newValue)] }
    }

    /// Takes the values of these columns away where `isFit` is true of them.
    mutating func forget(_ names: Set<String>, where isFit: (DatabaseValue) -> Bool) {
        for index in values.indices where names.contains(values[index].name) && isFit(values[index].value) { values[index].value = .null }
    }

    var encoded: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(values.count * 32)
        for (name, value) in values { Self.append(value, named: Array(name.utf8), to: &bytes) }
        return bytes
    }

    /// Appends one value to encoded ones.
    static func append(_ value: DatabaseValue, named name: [UInt8], to bytes: inout [UInt8]) {
        bytes.append(UInt8(truncatingIfNeeded: name.count))
        bytes += name
        switch value.storage {
        case .null: bytes.append(0)
        case .int64(let number): append(number, as: 1, to: &bytes)
        case .double(let number): append(number.bitPattern, as: 2, to: &bytes)
        case .string(let text): append(text.utf8, as: 3, to: &bytes)
        case .blob(let data): append(data, as: 4, to: &bytes)
        }
    }

    private static func append(_ number: some FixedWidthInteger, as type: UInt8, to bytes: inout [UInt8]) {
        bytes.append(type)
        unsafe withUnsafeBytes(of: number.bigEndian) { unsafe bytes.append(contentsOf: $0) }
    }

    private static func append(_ part: some Collection<UInt8>, as type: UInt8, to bytes: inout [UInt8]) {
        append(UInt32(part.count), as: type, to: &bytes)
        bytes.append(contentsOf: part)
    }

    /// - Returns: nil for bytes that `encoded` has not made.
    init?(_ bytes: [UInt8]) {
        var (rest, values): (ArraySlice<UInt8>, [(name: String, value: DatabaseValue)]) = (bytes[...], [])
        func take(_ count: Int) -> ArraySlice<UInt8>? {
            guard count >= 0, count <= rest.count else { return nil }
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }
        func number(_ count: Int) -> UInt64? { take(count)?.reduce(0) { $0 << 8 | UInt64($1) } }
        while let length = rest.popFirst() {
            guard let name = take(Int(length)), let type = rest.popFirst() else { return nil }
            let value: DatabaseValue
            switch type {
            case 0: value = .null
            case 1:
                guard let number = number(8) else { return nil }
                value = Int64(bitPattern: number).databaseValue
            case 2:
                guard let number = number(8) else { return nil }
                value = Double(bitPattern: number).databaseValue
            case 3, 4:
                guard let count = number(4), let part = take(Int(count)) else { return nil }
                value = type == 3 ? String(decoding: part, as: UTF8.self).databaseValue : Data(part).databaseValue
            default: return nil
            }
            values.append((String(decoding: name, as: UTF8.self), value))
        }
        self.values = values
    }
}
