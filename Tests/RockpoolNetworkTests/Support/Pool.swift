// Listeners on loopback over a scripted upstream, shared by the tests of client connections.
import Foundation
import RockpoolCore
import RockpoolEngine
import RockpoolTesting

@testable import RockpoolNetwork

/// A proxy listener and a gateway listener for `notes`, each on its own port.
final class Pool: Sendable {
    let scripted: ScriptedEngine
    let listeners: Listeners

    var origin: ScriptedOrigin { scripted.origin }
    var engine: Engine { scripted.engine }
    var gateway: String { listeners.gateways["notes"] ?? "" }
    var proxy: String { listeners.proxy }

    init(
        rule: @escaping ScriptedOrigin.Rule = { _ in .ok() }, upstream: Upstream = .notes(),
        configure: (inout Configuration) -> Void = { _ in }, clients: @escaping ClientLookup.Finder = { $0.map { _ in nil } }
    ) async throws {
        var upstream = upstream
        upstream.gateway = "127.0.0.1:0"
        scripted = try ScriptedEngine(upstreams: [upstream], rule: rule) { configuration in
            configuration.proxy.listen = "127.0.0.1:0"
            configure(&configuration)
        }
        listeners = try await Listeners.open(
            configuration: scripted.engine.configuration, engine: scripted.engine,
            contexts: LeafContexts(files: AuthorityFiles(stateDirectory: scripted.store.directory + "/state"), now: Self.realTime),
            addresses: AddressPolicy(deny: []), ownPorts: OwnPorts(),
            viaName: scripted.engine.viaName, logger: .silent, clients: clients)
    }

    convenience init(_ configure: (inout Configuration) -> Void) async throws {
        try await self.init(rule: { _ in .ok() }, configure: configure)
    }

    /// The real time, for certificates: clients check them against the real clock.
    static let realTime: @Sendable () -> Timestamp = { Timestamp(seconds: Int64(Date().timeIntervalSince1970)) }

    /// Opens a connection to the gateway.
    func connect(isSlow: Bool = false) async throws -> RawConnection { try await .open(gateway, isSlow: isSlow) }

    /// Sends `text` to the gateway and returns the bytes it sends until it closes the connection.
    func answer(to text: String) async throws -> String {
        let connection = try await connect()
        try await connection.send(text)
        return try await connection.readToEnd(within: .seconds(8))
    }
}
