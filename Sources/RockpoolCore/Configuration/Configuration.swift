// The configuration of a running server, with the defaults for missing settings (docs/reference/configuration.md).

/// The whole configuration. `Configuration()` is the configuration without a file.
package struct Configuration: Hashable, Sendable {
    package var proxy = ProxySettings()
    package var admin = AdminSettings()
    package var log = LogSettings()
    package var storage = StorageSettings()
    package var cleanup = CleanupSettings()
    /// The built-in categories, overridden by configured ones of the same name, then the user's own.
    package var categories: [Category] = Category.builtIn
    package var defaults = DefaultSettings()
    package var upstreams: [Upstream] = []
    /// The network mode at startup; a mode set manually since takes precedence.
    package var network = Reachability.Mode.auto

    package init() {}

    /// True if `origin` is one of this server's listeners, as far as their ports are configured; nothing is ever fetched from it.
    package func isOwnListener(_ origin: OriginAddress) -> Bool {
        let listeners = [proxy.listen, admin.listen] + upstreams.compactMap(\.gateway)
        return listeners.compactMap { HostAndPort($0) }.contains { listener in
            listener.port == origin.port && (OriginAddress.isLoopback(origin.host) || listener.host == origin.host)
        }
    }
}

/// The forward proxy's listener and its limits.
package struct ProxySettings: Hashable, Sendable {
    /// `host:port`; port 0 selects a free port.
    package var listen = "127.0.0.1:7625"
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

/// Limits on the size and number of a client's messages and connections.
package struct ClientLimits: Hashable, Sendable {
    package var headBytes = ByteCount.kib(64)
    package var fieldBytes = ByteCount.kib(32)
    package var fields = 128
    package var targetBytes = ByteCount.kib(16)
    /// The minimum rate of a request body in bytes per second, once the time limit for a head has passed.
    package var bodyRate = ByteCount.kib(1)
    package var connections = 1024
    /// Connections from one address. Loopback clients count as one address if `allow` is configured, else they are not limited.
    package var connectionsPerAddress = 128
    package var requestsPerConnection = 1000

    package init() {}
}

package struct AdminSettings: Hashable, Sendable {
    package var listen = "127.0.0.1:7626"
    /// Names that `Host` may carry in addition to the loopback names.
    package var hosts: [String] = []

    package init() {}
}

/// Logging of exchanges.
package struct LogSettings: Hashable, Sendable {
    /// One line per exchange on stdout. Enabling it disables the hot path, so that every exchange is processed in full.
    package var access = AccessFormat.off

    package init() {}
}

/// Storage locations and their limits (docs/storage.md#directories, docs/storage.md#limits-and-shares).
package struct StorageSettings: Hashable, Sendable {
    package var cacheDir = "~/.cache/rockpool"
    package var stateDir = "~/.local/state/rockpool"
    package var cacheLimit = ByteCount.mb(500)
    package var dataLimit = ByteCount.mb(200)
    /// Free space of the file system below which nothing is stored.
    package var minFree = ByteCount.mb(256)
    package var memoryLimit = ByteCount.mb(64)
    /// The share of `cacheLimit` for all pinned bytes together, 0…100.
    package var pinCapPercent = 25
    /// The share of `dataLimit` for the open operations of one principal, 0…100.
    package var principalSharePercent = 50
    /// The share of `dataLimit` for the open operations of all principals without a credential accepted by an upstream, together, 0…100.
    package var unprovedSharePercent = 12
    /// Which bodies are sealed at rest.
    package var encrypt = StorageEncryption.off
    /// A file with the secret that seals them; nil: this installation's own.
    package var keyFile: String?

    package init() {}
}

/// Which bodies lie sealed on the disk.
package enum StorageEncryption: String, CaseIterable, Hashable, Sendable {
    case off
    /// Queued bodies, their answers and conflict sides, and cached bodies that belong to one principal.
    case `private`
}

/// The schedule and the age limits of cleanup (docs/storage.md#cleanup).
package struct CleanupSettings: Hashable, Sendable {
    package var interval = TimeSpan.minutes(15)
    package var expiredAfter = TimeSpan.days(7)
    package var failedAfter = TimeSpan.days(30)
    /// How long a refused or parked operation of a principal with an unproved credential is kept.
    package var unprovedAfter = TimeSpan.hours(24)
    /// The percentage of free pages above which a full VACUUM runs, 0…100.
    package var vacuumWhenFreePercent = 25

    package init() {}
}

/// Settings for hosts that are not declared.
package struct DefaultSettings: Hashable, Sendable {
    /// `auto` chooses by the response's type.
    package var category = "auto"
    package var policy = CachePolicy.standard
    package var intercept = false
    package var queueWrites = false

    package init() {}
}
