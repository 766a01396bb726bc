// Facts of the process that the admin API serves for commands, which have only the socket (docs/reference/admin-api.md#server).
package import RockpoolCore
import Synchronization

/// The process around the engine: its version, its places, and its configuration.
package struct ServerFacts: Sendable {
    package var version = ""
    /// The path of the configuration file; nil without a file.
    package var configFile: String?
    package var stateDirectory = ""
    package var cacheDirectory = ""
    /// `host:port` of the forward proxy as bound.
    package var proxy: String?
    /// Open connections of clients, and open tunnels.
    package var connections: @Sendable () -> (clients: Int, tunnels: Int) = { (0, 0) }
    /// When the certificate authority expires; nil without one.
    package var authorityExpiry: @Sendable () -> Timestamp? = { nil }
    /// The documentation that came with the program; nil without any.
    package var documentation: DocumentationPages?
    /// The last reading of the configuration; the start counts.
    package var lastReload: @Sendable () -> (at: Timestamp, isGood: Bool)? = { nil }
    /// The effective configuration as a JSON text.
    package var configuration: @Sendable () -> String = { "{}" }
    /// Every key of the effective configuration with its value and its source, as items of a list.
    package var values: @Sendable () -> [JSONValue] = { [] }
    /// Reads the configuration again and applies it. Throws the reason why the old one stays in force.
    package var reload: @Sendable () async throws -> ReloadOutcome = { ReloadOutcome(waiting: [], partly: []) }
    /// Declares an upstream in the configuration file, and applies it.
    package var declare: @Sendable (UpstreamDeclaration) async throws(UpstreamDeclaration.Refusal) -> UpstreamDeclaration.Outcome = {
        _ throws(UpstreamDeclaration.Refusal) in throw .notPossible("this server cannot change its configuration")
    }

    package init() {}
}

/// One more upstream (docs/reference/admin-api.md#server).
package struct UpstreamDeclaration: Hashable, Sendable {
    package let name: String
    package let origin: String
    /// `host:port`; nil for the next free port.
    package let gateway: String?

    package init(name: String, origin: String, gateway: String? = nil) { (self.name, self.origin, self.gateway) = (name, origin, gateway) }

    package struct Outcome: Hashable, Sendable {
        /// True if it was declared before.
        package let isKnown: Bool
        /// `host:port` as bound; nil without a gateway.
        package let gateway: String?

        package init(isKnown: Bool, gateway: String?) { (self.isKnown, self.gateway) = (isKnown, gateway) }
    }

    package enum Refusal: Error {
        /// The declaration is wrong.
        case invalid(String)
        /// The name or the origin is another upstream's, or the file cannot be changed.
        case notPossible(String)
    }
}

/// The keys of a reloaded configuration that are not yet, or only partly, in force.
package struct ReloadOutcome: Hashable, Sendable {
    /// Keys that change with a restart.
    package var waiting: [String]
    /// Keys that serving uses now, and the store after a restart.
    package var partly: [String]

    package init(waiting: [String], partly: [String]) {
        self.waiting = waiting
        self.partly = partly
    }
}

/// The address of the TCP listener, known when it is bound.
final class BoundAddress: Sendable {
    private let held = Mutex<HostAndPort?>(nil)

    var address: HostAndPort? { held.withLock { $0 } }

    func set(_ address: HostAndPort) { held.withLock { $0 = address } }
}
