// The interface to the network: one request to an upstream, one response or a failure with its extent (docs/architecture.md#rules).
package import RockpoolCore

/// Sends requests to upstreams. Implemented by libcurl in `RockpoolNetwork`, and by scripts in tests.
package protocol Origin: Sendable {
    /// Sends `request` and returns when the final response head has arrived; the body follows.
    ///
    /// Throws `TransferFailure`, which states whether the request may have reached the upstream.
    func send(_ request: OutboundRequest) async throws(TransferFailure) -> OriginReply

    /// Aborts every transfer to `origin` (nil: to any origin) and closes its idle connections.
    func endTransfers(to origin: OriginAddress?)
}

extension Origin {
    package func endTransfers(to origin: OriginAddress?) {}
}
