// The description of one table of a damaged database, and the query that reads its rows from either end.
import GRDB

/// A table as defined by the schema.
struct SalvagedTable: Sendable {
    var name: String
    var columns: [String]
    /// The column that orders the rows: `rowid`, or the first column of the primary key.
    var key: String
    /// True if keys are integers: only a gap between integers can be halved.
    var hasIntegerKey: Bool
    /// True if several rows may have the same key.
    var hasEqualKeys: Bool
    private var isRowidTable: Bool

    /// - Parameter db: an undamaged database of the same schema.
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

    /// A query for the rows between two keys, both inclusive, from either end; the key first, then `columns`.
    func query(backwards: Bool) -> String {
        let hint = isRowidTable ? "NOT INDEXED" : ""
        let order = backwards ? "DESC" : "ASC"
        return """
            SELECT \(key), \(columns.joined(separator: ", ")) FROM \(name) \(hint) WHERE \(key) >= ? AND \(key) <= ? ORDER BY \(key) \(order)
            """
    }
}
