// Publishes changes of the outbox to the replayer, the overlay and the event listeners.
import RockpoolCore
import RockpoolStore

/// Publishes changes of operations.
package final class OutboxNotifier: Sendable {
    let data: DataStore
    let cache: CacheStore
    let credentials: Credentials
    let events: EngineEvents
    /// The configuration in force.
    let active: ActiveConfiguration
    let now: @Sendable () -> Timestamp
    /// Changes of operations that the replayer has not read yet.
    let inbox = ReplayInbox()
    /// Writes that reads must still include.
    let overlay = WriteOverlay()
    /// Lanes that wait for an attempt that may still execute.
    let laneHolds = LaneHolds()

    init(
        data: DataStore, cache: CacheStore, credentials: Credentials, events: EngineEvents, active: ActiveConfiguration,
        now: @escaping @Sendable () -> Timestamp
    ) {
        self.data = data
        self.cache = cache
        self.credentials = credentials
        self.events = events
        self.active = active
        self.now = now
    }
}
