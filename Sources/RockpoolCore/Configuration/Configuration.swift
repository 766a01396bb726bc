// The configuration of a running server, with the defaults for missing settings (docs/reference/configuration.md).

/// The whole configuration. `Configuration()` is the configuration without a file.
package struct Configuration: Hashable, Sendable {
    package var proxy = ProxySettings()
    package var admin = AdminSettings()
    package var log = LogSettings()
    package var storage = StorageSettings()
    package var outbox = OutboxSettings()
    package var cleanup = CleanupSettings()
    /// The built-in categories, overridden by configured ones of the same name, then the user's own.
    package var categories: [CacheCategory] = CacheCategory.builtIn
    package var defaults = DefaultSettings()
    package var upstreams: [Upstream] = []
    /// The parent proxies of hosts without one of their own, by rules; the first that matches counts.
    package var via: [ParentRule] = []
    /// Where traces are sent; nil: nowhere.
    package var tracing: TracingSettings?
    /// Who is told about which events.
    package var notify: [NoticeRule] = []
    /// Where the ends of writes may be posted.
    package var callbacks = CallbackSettings()
    /// Further names of query parameters that carry secrets.
    package var secrets: [String] = []
    /// What this gateway has to do with others.
    package var fleet = FleetSettings()
    /// The network mode at startup; a mode set manually since takes precedence.
    package var network = Reachability.Mode.auto

    package init() {}

    /// True if `origin` is one of this server's listeners, as far as their ports are configured; nothing is ever fetched from it.
    package func isOwnListener(_ origin: OriginAddress) -> Bool {
        let listeners =
            [proxy.listen, admin.listen] + [proxy.socks, proxy.transparent].compactMap(\.self) + upstreams.compactMap(\.gateway)
        return listeners.compactMap { HostAndPort($0) }.contains { listener in
            listener.port == origin.port && (OriginAddress.isLoopback(origin.host) || listener.host == origin.host)
        }
    }
}

package struct AdminSettings: Hashable, Sendable {
    package var listen = "127.0.0.1:7626"
    /// Names that `Host` may carry in addition to the loopback names.
    package var hosts: [String] = []
    /// The Unix socket of the commands; nil: `admin.sock` in the state directory.
    package var socket: String?
    package var socketAccess = SocketAccess.owner

    package init() {}
}

/// The users that may use the Unix socket of the commands, and with it the whole admin API without a token.
package enum SocketAccess: String, CaseIterable, Hashable, Sendable {
    /// The user of the server, and root.
    case owner
    /// The group of the server too.
    case group
}

extension Configuration {
    /// The path of the Unix socket of the commands.
    package var socketPath: String { admin.socket ?? storage.stateDir + "/admin.sock" }
}

/// Logging of exchanges.
package struct LogSettings: Hashable, Sendable {
    /// One line per exchange on stdout. Enabling it disables the hot path, so that every exchange is processed in full.
    package var access = AccessFormat.off
    /// The format of the log on stderr.
    package var format = LogFormat.text

    package init() {}
}

/// Settings for hosts that are not declared.
package struct DefaultSettings: Hashable, Sendable {
    /// `auto` chooses by the response's type.
    package var category = "auto"
    package var policy = CachePolicy.standard
    package var intercept = false
    package var queueWrites = false
    /// The staleness up to which their responses are served in place of errors; nil: as they say.
    package var staleOnError: TimeSpan?
    /// What becomes of a fetch whose client leaves; nil: the built-in bounds.
    package var onAbort: AbortRule?

    package init() {}
}

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

/// A listener that represents one origin. Several upstreams may name the same listener (docs/reference/configuration.md#gateway).
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
