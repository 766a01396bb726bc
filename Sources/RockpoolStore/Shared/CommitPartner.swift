// The other database of a transaction, which commits first (docs/fleet.md#transactions).
import CSQLiteCalls
import FoundationEssentials
import GRDB
import Synchronization

/// The databases that a job needs.
package enum CommitScope: Sendable {
    /// Rows that a fleet shares: the partner must commit them.
    case shared
    /// Rows that a fleet shares; this node may keep them for later while the partner is away.
    case either
    /// Nothing but to have what the partner has; the job changes no rows that a fleet shares.
    case feed
    /// Rows of this node only.
    case own
}

/// Takes part in every shared transaction of a `CommitQueue`. All methods are called on the writer's thread, inside SQLite's transaction.
protocol CommitPartner: Sendable {
    /// Begins, and brings SQLite's rows up to date before the first job.
    /// - Parameters:
    ///   - isReading: true if that is all: the jobs change nothing that the partner would commit.
    ///   - bodies: the names of bodies in files that the jobs add.
    /// - Returns: false when there is more to bring up to date than one transaction should take: it ends without jobs, which wait for the
    ///   next.
    /// - Throws: `PartnerAbsence`, or the error of SQLite.
    func begin(in db: Database, isReading: Bool, bodies: [Data]) throws -> Bool
    /// Takes over what the jobs have changed, and commits it.
    /// - Throws: `PartnerAbsence`, `PartnerRefusal`, or the error of SQLite. SQLite must not commit then.
    func prepare(in db: Database) throws
    /// SQLite has failed after `prepare`: returns what the callers get, who must not take what they asked for as refused.
    func isHalfCommitted(by failure: any Error) -> any Error
    /// What the partner brings by itself was refused: the next transaction brings less, or does without what is refused.
    /// - Throws: the error of SQLite.
    func bringLess(after refusal: PartnerRefusal, in db: Database) throws
    /// Gives up a transaction that was begun; no effect otherwise.
    func abandon()
    /// Outside the transaction: SQLite has committed or rolled back.
    func ended(in db: Database, isCommitted: Bool)
    /// Begins a transaction of SQLite alone, while the partner is away.
    func beginAlone(in db: Database) throws
    /// Ends it, before its commit.
    func endAlone(in db: Database) throws
}

/// The partner refuses what the jobs of a transaction have changed, as it would again. Nothing has changed.
struct PartnerRefusal: Error {
    /// What the callers get.
    let error: any Error
}

/// The partner does not take part.
struct PartnerAbsence: Error {
    /// What the callers get.
    let error: any Error
    /// True if the partner may have committed.
    var isUnknown = false
    /// True if jobs of the scope `either` run without it.
    var permitsEither = false
}

/// The partner of the writer that shares the outbox with other nodes.
protocol FleetMember: CommitPartner {
    /// True while the transaction under way is this node's alone.
    var isAlone: Bool { get }
    /// Begins to note changes. Call it once, on the writing connection, before the first change.
    func begin(on db: Database) throws
    /// Claims an operation for this node, in the transaction that leases it.
    /// - Returns: false when its lane is another node's, or this node may not send now.
    func claim(_ sequence: Int64, in db: Database) throws -> Bool
    /// True if this node may record what became of an operation in flight: it has leased it, and was not fenced since; or no node has it.
    func owns(_ sequence: Int64, in db: Database) throws -> Bool
    /// Ends the lease. Call it when nothing is sent any more.
    func leave() async
}

/// The triggers of the schema on the connection of a replica: what they did at another node comes as rows (docs/fleet.md#shared). Temporary
/// triggers in the place of those of the schema, which can be suspended: SQLite's own switch makes it compile every statement of the
/// connection anew, each time.
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
