// Answers reads: looks up, decides, serves or fetches, and stores (RFC 9111 §4).
import Logging
import RockpoolCore
import RockpoolStore

/// The read pipeline, and the parts of it that writes use.
package final class ReadPipeline: Sendable {
    let cache: CacheStore
    let data: DataStore
    let reachability: ReachabilityTable
    let credentials: Credentials
    let upstreams: UpstreamClient
    let renewal: CredentialRenewal
    /// The configuration in force.
    let active: ActiveConfiguration
    let logger: Logger
    /// The largest complete body that is fetched after a HEAD or a range request.
    let cheapWhole: ByteCount
    let now: @Sendable () -> Timestamp
    /// Fetches in progress; one fetch serves all clients that request the same.
    let fills = InFlightFetches()
    let sightings = Sightings()
    /// One task at a time joins the stored parts of a key.
    let joins = KeyTurns()

    init(
        cache: CacheStore, data: DataStore, reachability: ReachabilityTable, credentials: Credentials, upstreams: UpstreamClient,
        renewal: CredentialRenewal, active: ActiveConfiguration, logger: Logger, cheapWhole: ByteCount,
        now: @escaping @Sendable () -> Timestamp
    ) {
        self.cache = cache
        self.data = data
        self.reachability = reachability
        self.credentials = credentials
        self.upstreams = upstreams
        self.renewal = renewal
        self.active = active
        self.logger = logger
        self.cheapWhole = cheapWhole
        self.now = now
    }

    /// Returns the key of a request without a body in one partition.
    func key(of request: RequestHead, _ plan: RoutePlan, in partition: StoragePartition) -> CacheKey {
        var request = request
        if let variance = searchVariance(for: request, plan) { request.target = variance.normalized(target: request.target) }
        return CacheKey(request, identity: partition.name)
    }

    /// The equivalence of the path's queries: from the route, otherwise from the origin's last `No-Vary-Search`.
    func searchVariance(for request: RequestHead, _ plan: RoutePlan) -> SearchVariance? {
        plan.searchVariance ?? cache.searchRule(ofPath: request.urlWithoutQuery).flatMap { SearchVariance(fieldValue: $0) }
    }
}
