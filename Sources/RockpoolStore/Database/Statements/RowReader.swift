// Sequential column access that does not trap on the contents of a damaged file (house rule: outside integers never trap).
import GRDB
import GRDBSQLite

/// A cursor over the columns of one row.
struct RowReader {
    @safe private enum Source {
        case row(Row)
        /// The row at which a statement is.
        case statement(SQLiteStatement, count: Int)
    }

    private let source: Source
    private var column = 0

    init(_ row: Row) { source = .row(row) }

    /// Reads the row at which a statement is; valid until its next step.
    init(current handle: SQLiteStatement) { unsafe source = .statement(handle, count: Int(sqlite3_column_count(handle))) }

    /// Returns the next column. Throws `UnreadableRow` when it is NULL or of another type.
    mutating func next<T: DatabaseValueConvertible>(_: T.Type = T.self) throws(UnreadableRow) -> T {
        guard let value: T = try nextIfAny() else { throw UnreadableRow(column: column - 1) }
        return value
    }

    /// Returns the next column; nil when it is NULL.
    mutating func nextIfAny<T: DatabaseValueConvertible>(_: T.Type = T.self) throws(UnreadableRow) -> T? {
        guard let stored else { throw UnreadableRow(column: column) }
        column += 1
        if stored.isNull { return nil }
        guard let value = T.fromDatabaseValue(stored) else { throw UnreadableRow(column: column - 1) }
        return value
    }

    /// The value of the next column; nil after the last one.
    private var stored: DatabaseValue? {
        switch source {
        case .row(let row): column < row.count ? row[column] : nil
        case .statement(let handle, let count):
            column < count ? unsafe DatabaseValue(sqliteStatement: handle, index: CInt(column)) : nil
        }
    }

    /// Returns the next column as a case of an enumeration; nil when it is NULL.
    mutating func word<E: RawRepresentable<String>>(_: E.Type = E.self) throws(UnreadableRow) -> E? {
        guard let text: String = try nextIfAny() else { return nil }
        guard let value = E(rawValue: text) else { throw UnreadableRow(column: column - 1) }
        return value
    }

    /// Returns the next column as a case of an enumeration. Throws `UnreadableRow` when it is NULL or another word.
    mutating func nextWord<E: RawRepresentable<String>>(_: E.Type = E.self) throws(UnreadableRow) -> E {
        guard let value: E = try word() else { throw unreadable }
        return value
    }

    /// The error of the column that was read last.
    var unreadable: UnreadableRow { UnreadableRow(column: column - 1) }
}

/// Thrown for a row that does not match the schema.
package struct UnreadableRow: Error {
    /// The position in the row, from 0.
    package var column: Int
    /// The name of the column, where its reader knows it.
    package var name: String?
}
