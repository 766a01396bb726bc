// JSON documents of operations, for the admin API and for the clients that sent them.
import RockpoolCore
import RockpoolStore

/// Describes operations.
package final class OperationDocuments: Sendable {
    let data: DataStore
    let reachability: ReachabilityTable
    let credentials: Credentials
    let events: EngineEvents
    let laneHolds: LaneHolds
    let pauses: UpstreamPauses
    /// The configuration in force.
    let active: ActiveConfiguration
    let now: @Sendable () -> Timestamp

    init(
        data: DataStore, reachability: ReachabilityTable, credentials: Credentials, events: EngineEvents, laneHolds: LaneHolds,
        pauses: UpstreamPauses, active: ActiveConfiguration, now: @escaping @Sendable () -> Timestamp
    ) {
        self.data = data
        self.reachability = reachability
        self.credentials = credentials
        self.events = events
        self.laneHolds = laneHolds
        self.pauses = pauses
        self.active = active
        self.now = now
    }
}
