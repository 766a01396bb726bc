// The client-facing sockets: the forward proxy and one gateway per declared upstream that configures one.
import Glibc
package import Logging
import NIOCore
import NIOPosix
package import RockpoolCore
package import RockpoolEngine

/// All client-facing listeners of one server.
package final class Listeners: Sendable {
    /// The address of the forward proxy, with the real port in place of 0.
    package let proxy: String
    /// Upstream name → `host:port` of its gateway.
    package let gateways: [String: String]
    package let connections: OpenConnections
    let resting: RestingConnections
    private let tunnels: OpenTunnels
    private let channels: [any Channel]
    private let engine: Engine

    private init(
        proxy: String, gateways: [String: String], connections: OpenConnections, resting: RestingConnections, tunnels: OpenTunnels,
        channels: [any Channel], engine: Engine
    ) {
        self.engine = engine
        self.resting = resting
        self.tunnels = tunnels
        self.proxy = proxy
        self.gateways = gateways
        self.connections = connections
        self.channels = channels
    }

    /// Binds every listener of `configuration`.
    ///
    /// - Parameters:
    ///   - contexts: the certificates of tunnels that are decrypted.
    ///   - viaName: the name in `Via`, unique per instance.
    ///   - inherited: sockets opened by a service manager; they take precedence over the configured addresses.
    ///   - descriptors: may reduce the number of connections below the configured limit.
    ///   - clients: asks the system who is behind connections of this machine.
    /// - Throws: `ListenFailure` with the address that could not be bound.
    package static func open(
        configuration: Configuration, engine: Engine, contexts: LeafContexts, addresses: AddressPolicy, ownPorts: OwnPorts,
        viaName: String, inherited: InheritedSockets = InheritedSockets(),
        descriptors: DescriptorGauge = DescriptorGauge(.unlimited), logger: Logger,
        clients: @escaping ClientLookup.Finder = { SocketOwners.clients(of: $0) }
    ) async throws -> Listeners {
        let doors = GatewayListener.all(of: configuration.upstreams)
        let others = Self.others(of: configuration.proxy)
        let sockets = try inherited.matched(to: ["proxy"] + others.map(\.name) + doors.flatMap(\.upstreams).map(\.name))
        let limits = configuration.proxy.limits
        let resting = RestingConnections()
        let connectionLimit = min(limits.connections, descriptors.budget.clientConnections)
        // Each may need a file for its body.
        let shares = ClientShares(
            exchanges: min(limits.exchanges, max(HTTP2Connection.maximumStreams, descriptors.budget.reserve)), connections: connectionLimit)
        let connections = OpenConnections(
            limit: connectionLimit, sourceLimit: limits.connectionsPerAddress, rest: resting, shares: shares, find: clients)
        let dialer = TunnelDialer(
            engine: engine, resolver: AddressResolver(addresses: addresses, ownPorts: ownPorts), connectTimeout: .seconds(5))
        let relays = RelayPools(resolver: dialer.resolver)
        engine.upstreams.onSwitchedOff { [tunnels = dialer.tunnels] origin in
            tunnels.end(to: origin)
            relays.end(to: origin)
        }
        engine.upstreams.onSilence { relays.endIdle(to: $0) }
        let opening = Opening(
            settings: configuration.proxy, engine: engine, ownPorts: ownPorts, viaName: viaName, connections: connections, resting: resting,
            logger: logger, contexts: contexts,
            dialer: dialer, relays: relays, descriptors: descriptors)
        var channels: [any Channel] = []
        do {
            let proxy = try await opening.bind(configuration.proxy.listen, socket: sockets["proxy"], role: .proxy)
            channels.append(proxy)
            for other in others {
                channels.append(try await opening.bind(other.address, socket: sockets[other.name], role: other.role))
            }
            var gateways: [String: String] = [:]
            for door in doors {
                let socket = door.upstreams.lazy.compactMap { sockets[$0.name] }.first
                let channel = try await opening.bind(door.listen, socket: socket, role: .gateway(door))
                channels.append(channel)
                for upstream in door.upstreams { gateways[upstream.name] = channel.boundAddress(door.listen) }
            }
            return Listeners(
                proxy: proxy.boundAddress(configuration.proxy.listen), gateways: gateways, connections: connections, resting: resting,
                tunnels: dialer.tunnels, channels: channels, engine: engine)
        } catch {
            for channel in channels { try? await channel.close() }
            throw error
        }
    }

    /// Open tunnels and upgraded connections.
    package var tunnelCount: Int { tunnels.count }

    /// The listeners of the proxy besides its own.
    private static func others(of proxy: ProxySettings) -> [(name: String, address: String, role: ListenerRole)] {
        let all: [(String, String?, ListenerRole)] = [("socks", proxy.socks, .socks), ("transparent", proxy.transparent, .transparent)]
        return all.compactMap { name, address, role in address.map { (name, $0, role) } }
    }

    /// Stops accepting, lets running exchanges end within `grace`, then closes the remaining connections.
    package func drain(within grace: Duration) async {
        for channel in channels { try? await channel.close() }
        connections.drain()
        let deadline = ContinuousClock.now + grace
        while connections.count > 0, ContinuousClock.now < deadline {
            guard (try? await Task.sleep(for: .milliseconds(20))) != nil else { break }
        }
        engine.cutOff()
        connections.closeAll()
    }
}

/// The error of an address that could not be bound.
package struct ListenFailure: Error, CustomStringConvertible {
    let address: String
    let cause: String
    package var description: String { "cannot listen on \(address): \(cause)" }
}

/// The dependencies for binding one listener.
private struct Opening: Sendable {
    let settings: ProxySettings
    let engine: Engine
    let ownPorts: OwnPorts
    let viaName: String
    let connections: OpenConnections
    let resting: RestingConnections
    let logger: Logger
    let contexts: LeafContexts
    let dialer: TunnelDialer
    let relays: RelayPools
    let descriptors: DescriptorGauge

    func bind(_ address: String, socket: Int32?, role: ListenerRole) async throws -> any Channel {
        guard let place = HostAndPort(address) else { throw ListenFailure(address: address, cause: "not host:port") }
        let allowed = settings.allowedNetworks
        let services = SharedServices { service(role: role, listener: $0) }
        do {
            let bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.backlog, value: 1024)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .serverChannelInitializer { channel in
                    let isReady = channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandlers([AcceptGate(descriptors), AcceptBackoffHandler()])
                    }
                    guard case .transparent = role else { return isReady }
                    return isReady.flatMap { RedirectedConnection.admitForeignTargets(on: channel, host: place.host) }
                }
                .childChannelOption(.allowRemoteHalfClosure, value: true)
                .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
                .childChannelOption(.maxMessagesPerRead, value: 1)
                .childChannelInitializer { channel in prepare(channel, role: role, allowed: allowed, services: services) }
            guard let socket else { return try await taken(bootstrap.bind(host: place.host, port: place.port).get()) }
            let channel = try await bootstrap.withBoundSocket(socket).get()
            guard channel.localAddress.flatMap({ IPAddress($0) })?.isLoopback == true || !allowed.isEmpty else {
                try await channel.close()
                throw ListenFailure(
                    address: "the inherited \(channel.localAddress?.description ?? "socket")",
                    cause: "it can be reached from the network; name the networks that may connect in proxy.allow")
            }
            return taken(channel)
        } catch let error as IOError {
            throw ListenFailure(address: address, cause: error.errnoCode == EADDRINUSE ? PortOwner.words(forPort: place.port) : "\(error)")
        }
    }

    /// Registers the bound port as the process's own, so that no request is sent to it.
    private func taken(_ channel: any Channel) -> any Channel {
        channel.localAddress?.port.map { ownPorts.insert($0) }
        return channel
    }

    /// The service of the connections to one address of a listener.
    private func service(role: ListenerRole, listener: SocketAddress?) -> ConnectionService {
        let name = listener.map { "\($0.ipAddress ?? ""):\($0.port ?? 0)" } ?? ""
        return ConnectionService(
            engine: engine, resolution: TargetResolution(role: role, ports: dialer.ports, listener: name, ownPorts: ownPorts),
            timeouts: settings.timeouts, limits: settings.limits, viaName: viaName, dialer: dialer, relays: relays, contexts: contexts,
            connections: connections, resting: resting, logger: logger)
    }

    private func prepare(
        _ channel: any Channel, role: ListenerRole, allowed: [CIDR], services: SharedServices
    ) -> EventLoopFuture<Void> {
        let peer = channel.remoteAddress.flatMap { IPAddress($0) }
        let isFromHere = if case .transparent = role { RedirectedConnection.isOfThisMachine(channel) } else { false }
        guard let peer, isFromHere || allowed.admits(peer),
            let open = connections.admit(channel, from: isFromHere || peer.meansLoopback ? nil : peer, client: .address(peer))
        else {
            channel.close(promise: nil)
            return channel.eventLoop.makeSucceededVoidFuture()
        }
        guard let naming = connections.naming(open, on: channel.eventLoop) else {
            return begin(channel, role: role, open: open, services: services)
        }
        return naming.flatMap { begin(channel, role: role, open: open, services: services) }
    }

    private func begin(
        _ channel: any Channel, role: ListenerRole, open: OpenConnection, services: SharedServices
    ) -> EventLoopFuture<Void> {
        if case .transparent = role {
            let service = service(role: role, listener: channel.localAddress)
            return RedirectedConnection.begin(on: channel, service: service, open: open)
        }
        let service = services.service(at: channel.localAddress)
        return channel.eventLoop.makeCompletedFuture { try service.begin(on: channel, role: role, open: open) }
    }
}

extension Channel {
    /// Returns the configured address with the bound port.
    fileprivate func boundAddress(_ configured: String) -> String {
        guard var place = HostAndPort(configured), let port = localAddress?.port else { return configured }
        place.port = port
        return place.description
    }
}
