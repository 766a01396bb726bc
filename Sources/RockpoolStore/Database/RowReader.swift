// Sequential column access that does not trap on the contents of a damaged file (house rule: outside integers never trap).
import GRDB

/// A cursor over the columns of one row.
struct RowReader {
    let row: Row
    private var column = 0

    init(_ row: Row) { self.row = row }

    /// Returns the next column. Throws `UnreadableRow` when it is NULL or of another type.
    mutating func next<T: DatabaseValueConvertible>(_: T.Type = T.self) throws(UnreadableRow) -> T {
        guard let value: T = try nextIfAny() else { throw UnreadableRow(column: column - 1) }
        return value
    }

    /// Returns the next column; nil when it is NULL.
    mutating func nextIfAny<T: DatabaseValueConvertible>(_: T.Type = T.self) throws(UnreadableRow) -> T? {
        guard column < row.count else { throw UnreadableRow(column: column) }
        let stored: DatabaseValue = row[column]
        column += 1
        if stored.isNull { return nil }
        guard let value = T.fromDatabaseValue(stored) else { throw UnreadableRow(column: column - 1) }
        return value
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
