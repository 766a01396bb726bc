// The settings of a gateway (docs/reference/configuration.md#upstreams, `gateway`).

/// A plain HTTP listener that represents one origin.
package struct GatewaySettings: Hashable, Sendable {
    /// `host:port`; port 0 selects a free port.
    package var listen: String
    /// The bodies in which the origin's URL becomes the gateway's.
    package var rewriteBodies: [BodyRewriting] = []

    package init(listen: String) { self.listen = listen }
}
