// A client that a reply is kept ready for (docs/architecture.md#parts *memory tier*).
package import HTTPTypes
import RockpoolCore

/// The requests with one credential, or without one, that were found to get a kept reply.
package final class HotReader: Sendable {
    /// The hash of its requests.
    let hash: Int
    private let credential: CredentialDigest?
    /// The name of its principal; nil without a credential.
    package let principal: String?
    /// What it is shown of a place that it may change; nil for any other reply.
    package let shown: Showing?
    /// The fields of its first request, without secrets, as records show them.
    package let request: HTTPFields
    /// Bytes in memory.
    let memoryCost: Int64

    package init(_ arrival: PlainArrival, principal: String? = nil, shown: Showing? = nil, request: HTTPFields = [:]) {
        (hash, credential) = (arrival.hash, arrival.credential)
        (self.principal, self.shown, self.request) = (principal, shown, request)
        memoryCost = Int64(512 + request.size + (shown?.state.content?.count ?? 0))
    }

    /// True if the request has its credential, by the exact bytes.
    package func isFor(_ arrival: PlainArrival) -> Bool { credential == arrival.credential }
}
