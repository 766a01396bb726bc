// The settings of a gateway (docs/reference/configuration.md#gateway).

/// A listener that represents one origin. Several upstreams may name the same listener.
package struct GatewaySettings: Hashable, Sendable {
    /// `none` is plain HTTP; `auto` is TLS with a certificate of Rockpool's authority.
    package enum Security: String, CaseIterable, Sendable, Codable { case none, auto }

    /// `host:port`; port 0 selects a free port.
    package var listen: String
    /// The protocol below HTTP. Upstreams of one listener have the same.
    package var tls = Security.none
    /// The name in `Host` by which clients select this upstream; nil takes every name that no other upstream of the listener has.
    package var host: String?
    /// The beginning of paths by which clients select this upstream, removed from requests; nil takes every other path.
    package var path: String?
    /// The bodies in which the origin's URL becomes the gateway's.
    package var rewriteBodies: [BodyRewriting] = [.links]

    /// How bodies are changed; nil if they are not.
    package var rewriting: BodyRewriting? { rewriteBodies.contains(.jsonURLs) ? .jsonURLs : rewriteBodies.first }

    package init(listen: String) { self.listen = listen }
}
