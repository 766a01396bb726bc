// How a node stands in its fleet (docs/reference/admin-api.md#fleet).
package import RockpoolCore

/// The facts for status, doctor and metrics.
package struct FleetStanding: Hashable, Sendable {
    /// The id of this node, and its name.
    package var node = ""
    package var name = ""
    /// Why the shared database is away; nil while it is there.
    package var absence: String?
    /// True if this node takes no part any more until a person has done something.
    package var hasEnded = false
    /// True if an acknowledged write survives the loss of the database's host.
    package var survivesHost = false
    /// True if the database never waits for its disk (`fsync = off`).
    package var isVolatile = false
    /// The number of promotions that the database has seen.
    package var timeline: Int64 = 0
    /// The number of live nodes, with this one.
    package var nodes = 0
    /// The live nodes whose settings differ from those of this one, by name.
    package var differences: [FleetDifference] = []
    /// True if this node does the work that one node does for all. Not known before it has joined.
    package var isFirst = false
    /// The number of operations that this node keeps until the database is back.
    package var held = 0
    /// True if the outbox is no longer in the shared database, but in this node's own.
    package var hasMovedHere = false
    /// The number of changes that this node did not have yet when it looked last.
    package var behind: Int64 = 0
    /// How often this node had the lock of the fleet since its start, and how long it waited for it in sum, with the way to the database.
    package var transactions = 0
    package var lockWait = Duration.zero
    /// How often this node was fenced since its start.
    package var fenced = 0
    /// Time since the last renewal of the lease; nil without a lease.
    package var leaseAge: Duration?
    /// Time since everything was known that other nodes had changed.
    package var feedAge = Duration.zero
}
