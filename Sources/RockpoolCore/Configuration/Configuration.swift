// Everything a running server was told, with the defaults that serve when nothing was (contract §2).

/// The whole configuration. `Configuration()` is the one without a file.
package struct Configuration: Hashable, Sendable {
    package var proxy = ProxySettings()
    package var admin = AdminSettings()
    package var log = LogSettings()
    package var storage = StorageSettings()
    package var cleanup = CleanupSettings()
    /// The built-in categories, overridden where named, then the user's own.
    package var categories: [Category] = Category.builtIn
    package var defaults = DefaultSettings()
    package var upstreams: [Upstream] = []
    /// The switch at the start; what was set by hand since wins.
    package var network = Reachability.Mode.auto

    package init() {}

    /// Whether `origin` is one of our listeners, as far as the ports are named here: nothing is ever fetched from it.
    package func isOwnListener(_ origin: OriginAddress) -> Bool {
        let listeners = [proxy.listen, admin.listen] + upstreams.compactMap(\.gateway)
        return listeners.compactMap { HostAndPort($0) }.contains { listener in
            listener.port == origin.port && (OriginAddress.isLoopback(origin.host) || listener.host == origin.host)
        }
    }
}

/// The forward proxy's listener and its limits.
package struct ProxySettings: Hashable, Sendable {
    /// `host:port`; port 0 takes a free one.
    package var listen = "127.0.0.1:7625"
    /// Networks that may connect; a listener off loopback needs some.
    package var allow: [String] = []
    /// Ports CONNECT may reach, beside those of declared origins.
    package var connectPorts = [443, 8443]
    package var timeouts = ClientTimeouts()
    package var limits = ClientLimits()
    /// Addresses never connected to, as CIDR, checked on the resolved address.
    package var denyAddresses = ["169.254.0.0/16", "fe80::/10", "0.0.0.0/8"]
    /// Hosts to decrypt beside the upstreams with `intercept: true`.
    package var intercept: [String] = []
    /// Hosts that `rockpool env` tells clients to reach directly.
    package var noProxy: [String] = []

    package init() {}
}

/// How long a client may take.
package struct ClientTimeouts: Hashable, Sendable {
    /// For the whole head, from its first byte.
    package var head = TimeSpan.seconds(10)
    /// The longest wait between bytes of a body.
    package var body = TimeSpan.seconds(30)
    /// Between requests of a connection.
    package var idle = TimeSpan.seconds(60)
    /// Of a tunnel without traffic either way.
    package var tunnel = TimeSpan.minutes(10)

    package init() {}
}

/// How much a client may send and hold.
package struct ClientLimits: Hashable, Sendable {
    package var headBytes = ByteCount.kib(64)
    package var fieldBytes = ByteCount.kib(32)
    package var fields = 128
    package var targetBytes = ByteCount.kib(16)
    /// Bytes a second that a request's body must come with, once the time for a head has passed.
    package var bodyRate = ByteCount.kib(1)
    package var connections = 1024
    /// From one address. This machine's own clients are counted as one where `allow` names others, and not at all where it does not.
    package var connectionsPerAddress = 128
    package var requestsPerConnection = 1000

    package init() {}
}

package struct AdminSettings: Hashable, Sendable {
    package var listen = "127.0.0.1:7626"
    /// Names beside the loopback ones that `Host` may carry.
    package var hosts: [String] = []

    package init() {}
}

/// What is written of each exchange.
package struct LogSettings: Hashable, Sendable {
    /// One line for each exchange on stdout; every one of them then goes the full way.
    package var access = AccessFormat.off

    package init() {}
}

/// Where things are kept and how much they may take (storage.md §1, §2).
package struct StorageSettings: Hashable, Sendable {
    package var cacheDir = "~/.cache/rockpool"
    package var stateDir = "~/.local/state/rockpool"
    package var cacheLimit = ByteCount.mb(500)
    package var dataLimit = ByteCount.mb(200)
    /// Of the file system; below it nothing is stored.
    package var minFree = ByteCount.mb(256)
    package var memoryLimit = ByteCount.mb(64)
    /// Of `cacheLimit`, all pinned bytes together, 0…100.
    package var pinCapPercent = 25
    /// Of `dataLimit`: what the open operations of one principal may take, 0…100.
    package var principalSharePercent = 50
    /// Of `dataLimit`: what those of all clients together may take whose credential no upstream has accepted, 0…100.
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

/// When cleanup runs and what it takes (storage.md §6).
package struct CleanupSettings: Hashable, Sendable {
    package var interval = TimeSpan.minutes(15)
    package var expiredAfter = TimeSpan.days(7)
    package var failedAfter = TimeSpan.days(30)
    /// How long an operation of such a client is kept once it was refused or is parked.
    package var unprovedAfter = TimeSpan.hours(24)
    /// Share of free pages past which a full VACUUM runs, 0…100.
    package var vacuumWhenFreePercent = 25

    package init() {}
}

/// What holds for hosts that are not declared.
package struct DefaultSettings: Hashable, Sendable {
    /// `auto` decides by the response's type.
    package var category = "auto"
    package var policy = CachePolicy.standard
    package var intercept = false
    package var queueWrites = false

    package init() {}
}
