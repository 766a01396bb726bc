// The triggers of the schema on the connection of a replica: what they did at another node comes as rows (docs/fleet.md#shared).
import CSQLiteCalls
import GRDB
import Synchronization

/// Temporary triggers in the place of those of the schema, which can be suspended: SQLite's own switch makes it compile every statement of
/// the connection anew, each time.
final class OwnTriggers: Sendable {
    private let areRunning = Atomic(true)
    private static let name = "triggers_run"

    /// The condition of a trigger that `suspended` suspends.
    static let condition = "\(name)()"

    /// Puts the triggers in place. Call it once, on the writing connection, when the schema is complete.
    func begin(on db: Database) throws {
        db.add(function: DatabaseFunction(Self.name, argumentCount: 0) { [self] _ in areRunning.load(ordering: .relaxed) })
        for sql in try String.fetchAll(db, sql: "SELECT sql FROM main.sqlite_master WHERE type = 'trigger'") {
            try db.execute(sql: Self.temporary(sql))
        }
        let connection = unsafe UnsafeMutableRawPointer(db.sqliteConnection)
        // Temporary triggers always run.
        unsafe rp_run_triggers(connection, 0)
    }

    /// Runs `body` without these triggers.
    func suspended(_ body: () throws -> Void) rethrows {
        areRunning.store(false, ordering: .relaxed)
        defer { areRunning.store(true, ordering: .relaxed) }
        try body()
    }

    /// Returns the statement that makes the same trigger as a temporary one with the condition.
    /// - Parameter sql: of the schema: `CREATE TRIGGER name AFTER … ON table [WHEN condition] BEGIN … END`.
    static func temporary(_ sql: String) -> String {
        guard let start = sql.firstRange(of: "CREATE TRIGGER "), let table = sql.firstRange(of: " ON "),
            let body = sql.firstRange(of: " BEGIN")
        else { return sql }
        let head = sql[table.upperBound..<body.lowerBound]
        let when = head.firstRange(of: " WHEN ")
        let own = when.map { "(\(head[$0.upperBound...])) AND \(condition)" } ?? condition
        return """
            CREATE TEMP TRIGGER \(sql[start.upperBound..<table.lowerBound]) ON main.\(head[..<(when?.lowerBound ?? head.endIndex)])
            WHEN \(own)\(sql[body.lowerBound...])
            """
    }
}
