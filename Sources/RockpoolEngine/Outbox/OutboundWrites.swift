// Turns operations into requests that can be sent.
import RockpoolCore
import RockpoolStore

/// Requests for operations, and reads of the entities that they change.
package final class OutboundWrites: Sendable {
    /// The maximum size of a base in bytes. A larger representation is not pinned, and its writes cannot be merged.
    static let baseLimit: Int64 = .mib(1)

    let data: DataStore
    let upstreams: UpstreamClient
    let renewal: CredentialRenewal
    let credentials: Credentials
    let reads: ReadPipeline
    /// The configuration in force.
    let active: ActiveConfiguration
    let now: @Sendable () -> Timestamp

    init(
        data: DataStore, upstreams: UpstreamClient, renewal: CredentialRenewal, credentials: Credentials, reads: ReadPipeline,
        active: ActiveConfiguration, now: @escaping @Sendable () -> Timestamp
    ) {
        self.data = data
        self.upstreams = upstreams
        self.renewal = renewal
        self.credentials = credentials
        self.reads = reads
        self.active = active
        self.now = now
    }
}
