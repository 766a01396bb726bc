// The settings of the proxy's listener (docs/reference/configuration.md).

/// The forward proxy's listener and its limits.
package struct ProxySettings: Hashable, Sendable {
    /// `host:port`; port 0 selects a free port.
    package var listen = "127.0.0.1:7625"
    /// `host:port` of the SOCKS 5 listener; nil for none.
    package var socks: String?
    /// `host:port` of the listener for redirected connections; nil for none.
    package var transparent: String?
    /// The passwords of clients; nil admits every client.
    package var auth: ProxyAuthentication?
    /// Networks that may connect; required for a listener not on loopback.
    package var allow: [String] = []
    /// `allow`, parsed.
    package var allowedNetworks: [CIDR] { allow.compactMap { CIDR($0) } }
    /// Ports CONNECT may reach, in addition to those of declared origins.
    package var connectPorts = [443, 8443]
    package var timeouts = ClientTimeouts()
    package var limits = ClientLimits()
    /// Addresses never connected to, as CIDR, checked on the resolved address.
    package var denyAddresses = ["169.254.0.0/16", "fe80::/10", "0.0.0.0/8"]
    /// Hosts to decrypt, in addition to the upstreams with `intercept: true`.
    package var intercept: [String] = []
    /// Hosts that `rockpool env` lists for clients to reach directly.
    package var noProxy: [String] = []

    package init() {}
}

/// The proof that clients of the proxy owe.
package struct ProxyAuthentication: Hashable, Sendable {
    /// The file with the hashes of passwords.
    package var file: String

    package init(file: String) { self.file = file }
}

/// Time limits for clients.
package struct ClientTimeouts: Hashable, Sendable {
    /// For the whole head, from its first byte.
    package var head = TimeSpan.seconds(10)
    /// The longest wait between bytes of a body.
    package var body = TimeSpan.seconds(30)
    /// Between requests of a connection.
    package var idle = TimeSpan.seconds(60)
    /// Of a tunnel without traffic in either direction.
    package var tunnel = TimeSpan.minutes(10)

    package init() {}
}
