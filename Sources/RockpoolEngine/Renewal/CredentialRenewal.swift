// Learns from responses which credentials are accepted, and renews expired ones.
import Logging
import RockpoolCore
import RockpoolStore
import Synchronization

/// Proofs, refreshes and the shares that follow from them.
package final class CredentialRenewal: Sendable {
    let credentials: Credentials
    let data: DataStore
    let reachability: ReachabilityTable
    let upstreams: UpstreamClient
    let notifier: OutboxNotifier
    /// The configuration in force.
    let active: ActiveConfiguration
    let events: EngineEvents
    let logger: Logger
    let now: @Sendable () -> Timestamp
    /// Refresh tokens that clients received, and refreshes in progress.
    let renewals = Renewals()
    /// What answers have shown of who may read where.
    let places = Mutex(PlaceAccess())
    let comparisons = Comparisons()

    init(
        credentials: Credentials, data: DataStore, reachability: ReachabilityTable, upstreams: UpstreamClient, notifier: OutboxNotifier,
        active: ActiveConfiguration, events: EngineEvents, logger: Logger, now: @escaping @Sendable () -> Timestamp
    ) {
        self.credentials = credentials
        self.data = data
        self.reachability = reachability
        self.upstreams = upstreams
        self.notifier = notifier
        self.active = active
        self.events = events
        self.logger = logger
        self.now = now
    }
}
