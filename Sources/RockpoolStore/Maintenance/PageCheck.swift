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
        try String.fetchAll(db, sql: question).filter { $0 != "ok" }
    }
}
