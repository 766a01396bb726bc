// The other database of a transaction, which commits first (docs/fleet.md#transactions).
import FoundationEssentials
import GRDB

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
