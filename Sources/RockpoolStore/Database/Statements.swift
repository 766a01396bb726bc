// Runs a prepared statement with its values bound and its columns read directly: the argument list of GRDB costs more than the insertion of
// a row, and its `Row` makes a dictionary of all column names for each fetch.
import FoundationEssentials
import GRDB
import GRDBSQLite
import HTTPTypes
import RockpoolCore

extension Statement {
    /// Runs a statement that returns no rows.
    /// - Parameters:
    ///   - values: as many as the statement has parameters, in their order.
    ///   - db: the statement's database.
    /// - Throws: `DatabaseError`.
    func run(_ values: some Sequence<DatabaseValue>, in db: Database) throws {
        try unsafe bound(to: values, in: db) { handle in
            let code = unsafe sqlite3_step(handle)
            if code != SQLITE_DONE { throw failure(code, in: db) }
        }
    }

    /// Returns what `read` makes of the first row; nil if there is none.
    /// - Parameters: as those of `run`.
    /// - Throws: `DatabaseError`, and what `read` throws.
    func first<Value>(_ values: some Sequence<DatabaseValue>, in db: Database, _ read: (inout RowReader) throws -> Value) throws -> Value? {
        try unsafe bound(to: values, in: db) { handle in unsafe try next(of: handle, in: db, read) }
    }

    /// Returns what `read` makes of each row.
    /// - Parameters: as those of `run`.
    /// - Throws: `DatabaseError`, and what `read` throws.
    func all<Value>(_ values: some Sequence<DatabaseValue>, in db: Database, _ read: (inout RowReader) throws -> Value) throws -> [Value] {
        try unsafe bound(to: values, in: db) { handle in
            var results: [Value] = []
            while let value = try unsafe next(of: handle, in: db, read) { results.append(value) }
            return results
        }
    }

    private func next<Value>(of handle: SQLiteStatement, in db: Database, _ read: (inout RowReader) throws -> Value) throws -> Value? {
        let code = unsafe sqlite3_step(handle)
        if code == SQLITE_DONE { return nil }
        if code != SQLITE_ROW { throw failure(code, in: db) }
        var reader = unsafe RowReader(current: handle)
        return try read(&reader)
    }

    private func bound<Value>(
        to values: some Sequence<DatabaseValue>, in db: Database, _ body: (SQLiteStatement) throws -> Value
    ) throws -> Value {
        let handle = unsafe sqliteStatement
        defer {
            unsafe sqlite3_reset(handle)
            unsafe sqlite3_clear_bindings(handle)
        }
        for (index, value) in values.enumerated() {
            let code = unsafe Self.bind(value, to: handle, at: CInt(index + 1))
            if code != SQLITE_OK { throw failure(code, in: db) }
        }
        return try unsafe body(handle)
    }

    private static func bind(_ value: DatabaseValue, to handle: SQLiteStatement, at place: CInt) -> CInt {
        // SQLite copies texts and blobs before the call returns.
        let copied = unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        switch value.storage {
        case .null: return unsafe sqlite3_bind_null(handle, place)
        case .int64(let number): return unsafe sqlite3_bind_int64(handle, place, number)
        case .double(let number): return unsafe sqlite3_bind_double(handle, place, number)
        case .string(let text):
            var text = text
            return text.withUTF8 { bytes in
                unsafe bytes.withMemoryRebound(to: CChar.self) {
                    unsafe sqlite3_bind_text(handle, place, $0.baseAddress, CInt($0.count), copied)
                }
            }
        case .blob(let data):
            return unsafe data.withUnsafeBytes { bytes in
                // A blob without bytes is no NULL.
                guard let start = bytes.baseAddress else { return unsafe sqlite3_bind_zeroblob(handle, place, 0) }
                return unsafe sqlite3_bind_blob(handle, place, start, CInt(bytes.count), copied)
            }
        }
    }

    private func failure(_ code: CInt, in db: Database) -> DatabaseError {
        let message = unsafe db.sqliteConnection.map { unsafe String(cString: sqlite3_errmsg($0)) }
        return DatabaseError(resultCode: ResultCode(rawValue: code), message: message, sql: sql)
    }
}

// MARK: - Columns

/// A cursor over the columns of one row, which does not trap on the contents of a damaged file (house rule: outside integers never trap).
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

/// Serialised header fields of a row, which preserve order, case and raw bytes (RFC 9110 §5): a version byte, then name and value of each
/// field, with lengths as LEB128.
enum FieldCodec {
    private static let version: UInt8 = 1

    static func encode(_ fields: HTTPFields) -> Data {
        var bytes: [UInt8] = [version]
        for field in fields {
            append(Array(field.name.rawName.utf8), to: &bytes)
            append(field.valueBytes, to: &bytes)
        }
        return Data(bytes)
    }

    /// Returns the approximate number of bytes that `encode` makes.
    static func length(of fields: HTTPFields) -> Int64 {
        fields.reduce(1) { $0 + Int64($1.name.rawName.utf8.count + $1.value.utf8.count) + 2 }
    }

    /// Decodes bytes produced by `encode`; nil for any other bytes.
    static func decode(_ data: Data) -> HTTPFields? {
        var bytes = Array(data)[...]
        guard bytes.popFirst() == version else { return nil }
        var fields = HTTPFields()
        while !bytes.isEmpty {
            guard let name = part(of: &bytes), let value = part(of: &bytes),
                let fieldName = HTTPField.Name(String(decoding: name, as: UTF8.self))
            else { return nil }
            fields.append(HTTPField(name: fieldName, lenientValue: value))
        }
        return fields
    }

    private static func append(_ part: [UInt8], to bytes: inout [UInt8]) {
        var length = part.count
        while length >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: length) | 0x80)
            length >>= 7
        }
        bytes.append(UInt8(length))
        bytes += part
    }

    private static func part(of bytes: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        var length = 0
        var shift = 0
        while true {
            guard let byte = bytes.popFirst(), shift <= 28 else { return nil }
            length |= Int(byte & 0x7F) << shift
            if byte < 0x80 { break }
            shift += 7
        }
        guard length <= bytes.count else { return nil }
        defer { bytes = bytes.dropFirst(length) }
        return bytes.prefix(length)
    }
}

/// A SQL expression with the values of its `?`, so that a deletion can repeat the condition of its selection and later steps can exclude
/// it.
struct RowCondition: Sendable {
    var sql: String
    var arguments: StatementArguments

    init(_ sql: String, _ arguments: StatementArguments = []) {
        self.sql = sql
        self.arguments = arguments
    }

    /// The condition that no row meets.
    static var never: RowCondition { RowCondition("0") }

    static func && (a: Self, b: Self) -> Self { Self("(\(a.sql)) AND (\(b.sql))", a.arguments + b.arguments) }
    static func || (a: Self, b: Self) -> Self { Self("(\(a.sql)) OR (\(b.sql))", a.arguments + b.arguments) }
    static prefix func ! (a: Self) -> Self { Self("NOT (\(a.sql))", a.arguments) }
}

/// Comparisons with each constant of a list, one after the other (docs/storage.md#database-rules).
///
/// For `x IN ('a', 'b', 'c')`, SQLite makes a table of the constants each time a statement runs, one for each such condition of its CHECKs,
/// its partial indexes and its triggers: an operation's change of state took 157 µs with them, and takes 23 without. Two constants it
/// compares one by one.
enum ConstantLists {
    /// Returns a text of SQL with chains of comparisons in the place of lists: `(x = 'a' OR x = 'b' OR x = 'c')`.
    static func unrolled(_ sql: String) -> String {
        var (result, rest) = ("", sql[...])
        while let found = rest.firstRange(of: " IN (") {
            let isNegated = rest[..<found.lowerBound].hasSuffix(" NOT")
            let before = rest[..<found.lowerBound].dropLast(isNegated ? 4 : 0)
            let operand = before.reversed().prefix { $0.isLetter || $0.isNumber || "_.".contains($0) }.reversed()
            let list = rest[found.upperBound...].prefix { $0 != ")" }
            let constants = list.split(separator: ",").map { $0.drop(while: \.isWhitespace) }
            let isConstant = constants.allSatisfy { $0.first == "'" && $0.last == "'" || Int($0) != nil }
            if !operand.isEmpty, constants.count > 2, isConstant {
                let (comparison, conjunction) = isNegated ? ("<>", " AND ") : ("=", " OR ")
                let chain = constants.map { "\(String(operand)) \(comparison) \($0)" }.joined(separator: conjunction)
                result += before.dropLast(operand.count) + "(\(chain))"
                rest = rest[list.endIndex...].dropFirst()
            } else {
                result += rest[..<found.upperBound]
                rest = rest[found.upperBound...]
            }
        }
        return result + rest
    }

    /// Unrolls the lists of the CHECKs and of the partial indexes of a database, where they stand: what they say stays the same, so that no
    /// content changes (https://www.sqlite.org/lang_altertable.html, "Making Other Kinds Of Table Schema Changes"), and an older Rockpool
    /// can use the database.
    static func unroll(in db: Database) throws {
        let rows = try Row.fetchAll(
            db, sql: "SELECT name, sql FROM sqlite_schema WHERE type IN ('table', 'index') AND instr(sql, ' IN (')")
        let changed = try rows.compactMap { row -> (name: String, sql: String)? in
            var columns = RowReader(row)
            let (name, sql): (String, String) = (try columns.next(), try columns.next())
            let unrolled = unrolled(sql)
            return unrolled == sql ? nil : (name, unrolled)
        }
        guard !changed.isEmpty else { return }
        let version = try Int.fetchOne(db, sql: "PRAGMA schema_version") ?? 0
        try db.inTransaction(.immediate) {
            try db.execute(sql: "PRAGMA writable_schema = ON")
            for (name, sql) in changed {
                try db.execute(sql: "UPDATE sqlite_schema SET sql = ? WHERE name = ?", arguments: [sql, name])
            }
            try db.execute(sql: "PRAGMA schema_version = \(version + 1); PRAGMA writable_schema = RESET")
            return .commit
        }
    }
}

// Conditions on the state of an operation's row (docs/outbox.md#states).
extension OperationState {
    /// The condition of an operation that has not ended, written as in the partial indexes of open operations: SQLite uses an index only for
    /// the same comparisons.
    static let isOpen = ConstantLists.unrolled("state NOT IN (\(endedList))")

    /// `isOpen` for a row with this name.
    static func isOpen(_ row: String) -> String { ConstantLists.unrolled("\(row).state NOT IN (\(endedList))") }

    /// The ended states, as a list.
    static let endedList = OperationState.allCases.filter(\.hasEnded).map { "'\($0.rawValue)'" }.joined(separator: ", ")

    /// True for an operation that keeps its place in the order of its client (`OperationSummary.reach`), as far as its own row shows: it is or
    /// will be sent, waits for a credential of its principal, or its effect is looked for.
    static let keepsOrder = """
        (state IN ('pending', 'inflight') OR state = 'parked' AND reason = 'auth' AND principal <> ''
            OR state = 'uncertain' AND (method <> 'POST' OR entity_type IS NOT NULL) AND probes < \(ReplayContext.probes))
        """
}

/// SQL for the next number of a table with AUTOINCREMENT. SQLite itself gives one beyond every row that is there; this is one beyond the
/// last that was given, also while a node of a fleet keeps rows with numbers of a range of their own (docs/fleet.md#away).
enum NextNumber {
    static func sql(of table: String) -> String { "coalesce((SELECT seq + 1 FROM sqlite_sequence WHERE name = '\(table)'), 1)" }
}
