// Drops the waiting writes of one identity (docs/outbox.md#forgotten).
import RockpoolCore
import RockpoolStore

extension OutboxCommands {
    /// Discards the waiting writes of a principal, with those that need them. A write that is being sent at this moment stays.
    /// - Returns: the number of discarded operations of the principal, and of those that still wait.
    /// - Throws: `DataStoreError`.
    package func discardWrites(of principal: String) async throws -> (dropped: Int, waiting: Int) {
        let ids = try await data.waitingIDs(of: principal)
        for id in ids {
            // One that was discarded with an earlier one, or is being sent, is refused.
            do { _ = try await steer(.discard, id: id, withTree: true) } catch is Problem { continue }
        }
        let waiting = try await data.waitingIDs(of: principal).count
        return (max(0, ids.count - waiting), waiting)
    }
}
