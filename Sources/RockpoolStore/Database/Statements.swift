// Runs a prepared statement with its values bound and its columns read directly: the argument list of GRDB costs more than the insertion of a
// row, and its `Row` makes a dictionary of all column names for each fetch.
import FoundationEssentials
import GRDB
import GRDBSQLite

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
