// One table of a damaged database, and how its rows are asked for from either end.
import GRDB

/// A table as the schema has it.
struct SalvagedTable: Sendable {
    var name: String
    var columns: [String]
    /// What the rows lie in order of: `rowid`, or the first column of the primary key.
    var key: String
    /// Whether keys are integers: only between those can a gap be halved.
    var hasIntegerKey: Bool
    /// Whether several rows have one key.
    var hasEqualKeys: Bool
    private var isRowidTable: Bool

    /// - Parameter db: a sound database of the same schema.
    init(_ name: String, _ db: Database) throws {
        self.name = name
        columns = try String.fetchAll(db, sql: "SELECT name FROM pragma_table_info(?) ORDER BY cid", arguments: [name])
        isRowidTable = try Bool.fetchOne(db, sql: "SELECT wr = 0 FROM pragma_table_list WHERE name = ?", arguments: [name]) ?? true
        let keys = try Row.fetchAll(db, sql: "SELECT name, type FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", arguments: [name])
        var first = keys.first.map { RowReader($0) }
        let (column, type) = (try first?.next(String.self) ?? "rowid", try first?.next(String.self) ?? "")
        key = isRowidTable ? "rowid" : column
        hasIntegerKey = isRowidTable || type == "INTEGER"
        hasEqualKeys = !isRowidTable && keys.count > 1
    }

    /// Rows between two keys, both included, from either end; the key first, then `columns`.
    func query(backwards: Bool) -> String {
        let hint = isRowidTable ? "NOT INDEXED" : ""
        let order = backwards ? "DESC" : "ASC"
        return """
            SELECT \(key), \(columns.joined(separator: ", ")) FROM \(name) \(hint) WHERE \(key) >= ? AND \(key) <= ? ORDER BY \(key) \(order)
            """
    }
}
