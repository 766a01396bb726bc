// A database's part in a fleet, as the store sees it (docs/fleet.md#transactions).
import GRDB

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
