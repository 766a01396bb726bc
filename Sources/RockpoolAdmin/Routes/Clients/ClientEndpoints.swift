// The addresses that clients use (docs/reference/admin-api.md#clients).

/// The addresses clients connect to, and the certificate authority they must trust.
package struct ClientEndpoints: Sendable {
    /// `host:port` of the forward proxy as bound.
    package var proxy: String
    /// Upstream name → `host:port`, now: a reload opens and closes gateways.
    package var gateways: @Sendable () -> [String: String]
    /// The certificate authority's PEM file, which may not exist yet.
    package var certificatePath: String

    package init(proxy: String, gateways: @escaping @Sendable () -> [String: String], certificatePath: String) {
        self.proxy = proxy
        self.gateways = gateways
        self.certificatePath = certificatePath
    }
}
