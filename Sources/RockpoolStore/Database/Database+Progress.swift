// Progress callbacks during a long SQL statement (sqlite3_progress_handler).
import GRDB
import GRDBSQLite

extension Database {
    /// Calls `mayGoOn` on this thread every few thousand virtual machine steps of the statements that `body` runs. When it returns false,
    /// the statement is rolled back and throws `SQLITE_INTERRUPT`.
    func watchingProgress<Result>(_ mayGoOn: () -> Bool, while body: () throws -> Result) rethrows -> Result {
        let connection = unsafe sqliteConnection
        return try withoutActuallyEscaping(mayGoOn) { mayGoOn in
            var mayGoOn = mayGoOn
            return try unsafe withUnsafeMutablePointer(to: &mayGoOn) { pointer in
                unsafe sqlite3_progress_handler(
                    connection, 2000,
                    { context in unsafe context?.assumingMemoryBound(to: (() -> Bool).self).pointee() == false ? 1 : 0 }, unsafe pointer)
                defer { unsafe sqlite3_progress_handler(connection, 0, nil, nil) }
                return try body()
            }
        }
    }
}
