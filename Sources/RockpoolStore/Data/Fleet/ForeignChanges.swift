// What has come from other nodes, for the parts that keep state in memory (docs/fleet.md#reads).
import GRDB
package import RockpoolCore

/// The rows that a transaction of this node has taken over from others, and those that got other numbers.
package struct ForeignChanges: Sendable {
    /// The sequences of operations with a new state.
    var operations: Set<Int64> = []
    /// Those operations, as they are after the transaction.
    package var writes: [QueuedWrite] = []
    /// Operations that were open and are deleted.
    package var gone: [QueuedWrite] = []
    /// Operations that have another number now, as they were before, without bodies.
    package var renumbered: [QueuedWrite] = []
    /// Local ids that are new, or newly mapped.
    var localIDs: Set<String> = []
    /// True if credentials were proved.
    package var hasProofs = false
    /// True if an upstream has accepted a credential for the first time.
    var hasTakers = false

    /// What other nodes have found out of date.
    package var stale: Set<StalePlace> = []

    package var isEmpty: Bool {
        operations.isEmpty && gone.isEmpty && renumbered.isEmpty && localIDs.isEmpty && !hasProofs && !hasTakers && stale.isEmpty
    }

    /// Reads the operations.
    mutating func read(in db: Database) {
        writes = operations.sorted().compactMap { try? DataStore.fetch(in: db, where: "seq = ?", [$0]) }
    }
}
