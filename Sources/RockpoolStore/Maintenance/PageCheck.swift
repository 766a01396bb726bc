// The integrity check of a database's pages on a read-only connection (sqlite.org/pragma.html#pragma_quick_check).
import GRDB

enum PageCheck {
    /// Returns at most 20 problems; none when the pages are sound.
    /// - Parameter byTable: true checks one table per read, so that no snapshot blocks a checkpoint for long; this skips the list of free
    ///   pages.
    /// - Throws: `DatabaseError` for any error but damage.
    static func problems(_ reader: any DatabaseReader, byTable: Bool) async throws -> [String] {
        do {
            guard byTable else { return try await reader.read { try ask(in: $0, "PRAGMA quick_check(20)") } }
            let tables = try await reader.read { try String.fetchAll($0, sql: "SELECT name FROM sqlite_master WHERE type = 'table'") }
            var found: [String] = []
            for table in ["sqlite_schema"] + tables where found.count < 20 {
                found += try await reader.read { try ask(in: $0, "PRAGMA quick_check('\(table)')") }
            }
            return Array(found.prefix(20))
        } catch let error as DatabaseError where error.saysCorrupt {
            return [error.message ?? "\(error.resultCode)"]
        }
    }

    private static func ask(in db: Database, _ question: String) throws -> [String] {
        try String.fetchAll(db, sql: question).filter { try $0 != "ok" && !isMistaken($0, in: db) }
    }

    /// True for `NULL value in TABLE.column` of a sound table: the quick check of SQLite before 3.41 confuses the columns of a table WITHOUT ROWID
    /// where its key has another order, and the full one does not.
    private static func isMistaken(_ problem: String, in db: Database) throws -> Bool {
        let start = "NULL value in "
        guard problem.hasPrefix(start), let table = problem.dropFirst(start.count).split(separator: ".").first,
            table.allSatisfy({ $0.isASCII && ($0.isLetter || $0 == "_") })
        else { return false }
        return try String.fetchAll(db, sql: "PRAGMA integrity_check('\(table)')") == ["ok"]
    }
}
