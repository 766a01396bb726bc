// The client-facing sockets: the forward proxy and one gateway per declared upstream that configures one.
import Glibc
package import Logging
import NIOCore
import NIOPosix
package import RockpoolCore
package import RockpoolEngine
import Synchronization

/// All client-facing listeners of one server.
package final class Listeners: Sendable {
    /// The address of the forward proxy, with the real port in place of 0.
    package let proxy: String
    package let connections: OpenConnections
    let resting: RestingConnections
    private let tunnels: OpenTunnels
    /// The listeners of the proxy.
    private let channels: [any Channel]
    private let gates: Mutex<[Gate]>
    private let opening: Opening

    /// A gateway and its socket.
    fileprivate struct Gate: Sendable {
        let door: GatewayDoor
        let channel: any Channel
        /// `host:port` as bound.
        let address: String
    }

    private init(
        proxy: String, connections: OpenConnections, resting: RestingConnections, tunnels: OpenTunnels, channels: [any Channel],
        gates: [Gate], opening: Opening
    ) {
        self.resting = resting
        self.tunnels = tunnels
        self.proxy = proxy
        self.connections = connections
        self.channels = channels
        self.gates = Mutex(gates)
        self.opening = opening
    }

    /// Upstream name → `host:port` of its gateway.
    package var gateways: [String: String] {
        gates.withLock { gates in
            gates.reduce(into: [:]) { names, gate in
                for upstream in gate.door.listener.upstreams { names[upstream.name] = gate.address }
            }
        }
    }

    /// Binds every listener of `configuration`.
    ///
    /// - Parameters:
    ///   - contexts: the certificates of tunnels that are decrypted.
    ///   - origin: the engine's, whose connections exchanges without a pipeline use too; nil if it has none.
    ///   - viaName: the name in `Via`, unique per instance.
    ///   - inherited: sockets opened by a service manager; they take precedence over the configured addresses.
    ///   - descriptors: may reduce the number of connections below the configured limit.
    ///   - clients: asks the system who is behind connections of this machine.
    /// - Throws: `ListenFailure` with the address that could not be bound.
    package static func open(
        configuration: Configuration, engine: Engine, contexts: LeafContexts, origin: LoopOrigin? = nil,
        addresses: AddressPolicy, ownPorts: OwnPorts, viaName: String, inherited: InheritedSockets = InheritedSockets(),
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
        let relays = origin?.pools ?? RelayPools(resolver: dialer.resolver)
        engine.upstreams.onSwitchedOff { [tunnels = dialer.tunnels] origin in
            tunnels.end(to: origin)
            relays.end(to: origin)
        }
        engine.upstreams.onSilence { relays.endIdle(to: $0) }
        let opening = Opening(
            settings: ListenerSettings(configuration.proxy), engine: engine, ownPorts: ownPorts, viaName: viaName, connections: connections,
            resting: resting,
            logger: logger, contexts: contexts,
            dialer: dialer, relays: relays, descriptors: descriptors)
        var channels: [any Channel] = []
        do {
            let proxy = try await opening.bind(configuration.proxy.listen, socket: sockets["proxy"], role: .proxy)
            channels.append(proxy)
            for other in others {
                channels.append(try await opening.bind(other.address, socket: sockets[other.name], role: other.role))
            }
            let gates = try await Self.gates(
                doors.map { door in (door, door.upstreams.lazy.compactMap { sockets[$0.name] }.first) }, opening: opening)
            return Listeners(
                proxy: proxy.boundAddress(configuration.proxy.listen), connections: connections, resting: resting,
                tunnels: dialer.tunnels, channels: channels, gates: gates, opening: opening)
        } catch {
            for channel in channels { try? await channel.close() }
            throw error
        }
    }

    /// Opens gateways: all of them or none.
    private static func gates(_ wanted: [(listener: GatewayListener, socket: Int32?)], opening: Opening) async throws -> [Gate] {
        var gates: [Gate] = []
        do {
            for (listener, socket) in wanted {
                let door = GatewayDoor(listener)
                let channel = try await opening.bind(listener.listen, socket: socket, role: .gateway(door))
                gates.append(Gate(door: door, channel: channel, address: channel.boundAddress(listener.listen)))
            }
            return gates
        } catch {
            for gate in gates { await opening.close(gate.channel) }
            throw error
        }
    }

    // MARK: reload

    /// Gateways that were opened for a configuration that is not in force yet.
    package struct NextGateways: Sendable {
        fileprivate let kept: [(gate: Gate, listener: GatewayListener)]
        fileprivate let opened: [Gate]
        fileprivate let left: [Gate]
    }

    /// Opens the gateways that these upstreams need and that are not open. One at a time: no other reload may be under way.
    /// - Throws: `ListenFailure`; then nothing is changed.
    package func prepare(for upstreams: [Upstream]) async throws -> NextGateways {
        var left = gates.withLock { $0 }
        var (kept, missing): ([(Gate, GatewayListener)], [(GatewayListener, Int32?)]) = ([], [])
        for listener in GatewayListener.all(of: upstreams) {
            if let place = left.firstIndex(where: { $0.door.listener.isSamePlace(as: listener) }) {
                kept.append((left.remove(at: place), listener))
            } else {
                missing.append((listener, nil))
            }
        }
        return NextGateways(kept: kept, opened: try await Self.gates(missing, opening: opening), left: left)
    }

    /// Takes the time-outs and limits of `proxy` for new connections. Networks, ports and addresses stay.
    package func take(_ proxy: ProxySettings) {
        opening.settings.take(proxy)
        connections.setLimits(
            total: min(proxy.limits.connections, opening.descriptors.budget.clientConnections),
            perAddress: proxy.limits.connectionsPerAddress)
    }

    /// Lets prepared gateways take the place of those before.
    package func follow(_ next: NextGateways) async {
        for (gate, listener) in next.kept { gate.door.change(to: listener) }
        gates.withLock { $0 = next.kept.map(\.gate) + next.opened }
        for gate in next.left {
            gate.door.close()
            await opening.close(gate.channel)
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
        for channel in channels + gates.withLock({ $0.map(\.channel) }) { try? await channel.close() }
        connections.drain()
        let deadline = ContinuousClock.now + grace
        while connections.count > 0, ContinuousClock.now < deadline {
            guard (try? await Task.sleep(for: .milliseconds(20))) != nil else { break }
        }
        opening.engine.cutOff()
        connections.closeAll()
    }
}

/// The error of an address that could not be bound.
package struct ListenFailure: Error, CustomStringConvertible {
    let address: String
    let cause: String
    /// True if another process has the port.
    package var isInUse = false
    package var description: String { "cannot listen on \(address): \(cause)" }
}

/// The settings of the proxy that connections begin with. A reload changes its limits.
final class ListenerSettings: Sendable {
    private let state: Mutex<(settings: ProxySettings, version: Int)>

    init(_ settings: ProxySettings) { state = Mutex((settings, 0)) }

    var now: ProxySettings { state.withLock { $0.settings } }
    /// Counts the changes.
    var version: Int { state.withLock { $0.version } }

    func take(_ other: ProxySettings) {
        state.withLock { state in
            (state.settings.timeouts, state.settings.limits) = (other.timeouts, other.limits)
            state.version += 1
        }
    }
}

/// The dependencies for binding one listener.
private struct Opening: Sendable {
    let settings: ListenerSettings
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
        let allowed = settings.now.allowedNetworks
        let services = SharedServices(under: settings) { service(role: role, listener: $0) }
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
            let isInUse = error.errnoCode == EADDRINUSE
            throw ListenFailure(address: address, cause: isInUse ? PortOwner.words(forPort: place.port) : "\(error)", isInUse: isInUse)
        }
    }

    /// Registers the bound port as the process's own, so that no request is sent to it.
    private func taken(_ channel: any Channel) -> any Channel {
        channel.localAddress?.port.map { ownPorts.insert($0) }
        return channel
    }

    /// Closes a listener whose port is not the process's own any more.
    func close(_ channel: any Channel) async {
        let port = channel.localAddress?.port
        try? await channel.close()
        port.map { ownPorts.remove($0) }
    }

    /// The service of the connections to one address of a listener.
    private func service(role: ListenerRole, listener: SocketAddress?) -> ConnectionService {
        let name = listener.map { "\($0.ipAddress ?? ""):\($0.port ?? 0)" } ?? ""
        let settings = settings.now
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

/// Makes the service of each address of a listener once. They are as many as this machine has addresses.
final class SharedServices: Sendable {
    private let made = Mutex<(version: Int, services: [SocketAddress?: ConnectionService])>((0, [:]))
    private let settings: ListenerSettings
    private let make: @Sendable (SocketAddress?) -> ConnectionService

    /// - Parameter settings: those that `make` reads; after a change new ones are made.
    init(under settings: ListenerSettings, _ make: @escaping @Sendable (SocketAddress?) -> ConnectionService) {
        (self.settings, self.make) = (settings, make)
    }

    /// - Parameter address: the address of this machine that the client has connected to.
    func service(at address: SocketAddress?) -> ConnectionService {
        let version = settings.version
        return made.withLock { made in
            if made.version != version { made = (version, [:]) }
            if let service = made.services[address] { return service }
            let service = make(address)
            made.services[address] = service
            return service
        }
    }
}

/// The beginning of a connection at each kind of listener, and after a rest.
extension ConnectionService {
    /// Installs the first handlers of a connection.
    func begin(on channel: any Channel, role: ListenerRole, open: OpenConnection?) throws {
        let pipeline = channel.pipeline.syncOperations
        switch role {
        case .socks: try pipeline.addHandler(SocksHandler(service: self, open: open))
        case .gateway(let door) where door.listener.isSecure: try HandshakeHandler.beginListener(on: channel, service: self, open: open)
        case .proxy where engine.proxyPasswords != nil: try pipeline.addHandler(EncryptedProxyHandler(service: self, open: open))
        case .gateway, .proxy: try beginPlain(on: channel, open: open)
        case .intercepted, .transparent: try installHTTP1(on: channel, open: open, wire: .plain)
        }
    }

    private func beginPlain(on channel: any Channel, open: OpenConnection?) throws {
        try channel.pipeline.syncOperations.addHandler(PriorKnowledgeHandler(service: self, open: open))
        try installHTTP1(on: channel, open: open, wire: .plain)
    }

    /// True if a connection without TLS may begin with HTTP/2.
    private var takesPriorKnowledge: Bool {
        switch resolution.role {
        case .gateway: true
        case .proxy: engine.proxyPasswords == nil
        case .socks, .transparent, .intercepted: false
        }
    }

    /// The service for the streams of a connection of HTTP/2 without TLS: a request to the proxy names its origin by `:authority` alone
    /// (RFC 9113 §8.3.1).
    var ofStreams: ConnectionService { isProxy ? byHost() : self }
}

extension ConnectionService: RestingService {
    var idleLimit: TimeAmount { .milliseconds(timeouts.idle.milliseconds) }

    func resume(on channel: any Channel, open: OpenConnection, after past: RestingConnections.Past) throws {
        if past.requests == 0, takesPriorKnowledge { return try beginPlain(on: channel, open: open) }
        try installHTTP1(on: channel, open: open, wire: .plain, after: past)
    }
}

/// Sockets that were passed to this process, by their names (sd_listen_fds(3)).
package struct InheritedSockets: Sendable {
    /// The first descriptor that a service manager passes on.
    private static let firstDescriptor: Int32 = 3

    private var sockets: [(name: String, descriptor: Int32)] = []

    /// Creates an empty set: every listener binds its own socket.
    package init() {}

    /// Reads `LISTEN_FDS`, `LISTEN_FDNAMES` and `LISTEN_PID`, if they are meant for process `pid`.
    ///
    /// A socket belongs to the listener it is named after (`FileDescriptorName=`): `proxy`, or an upstream that has a gateway. A single
    /// unnamed socket is the proxy's. Child processes do not inherit the sockets.
    package init(_ environment: [String: String], pid: Int32 = getpid()) {
        guard environment["LISTEN_PID"].flatMap({ Int32($0) }) == pid, let count = environment["LISTEN_FDS"].flatMap({ Int32($0) }),
            (1...64).contains(count)
        else { return }
        let names = environment["LISTEN_FDNAMES"]?.split(separator: ":", omittingEmptySubsequences: false).map(String.init) ?? []
        for number in 0..<count {
            let descriptor = Self.firstDescriptor + number
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            sockets.append((Int(number) < names.count ? names[Int(number)] : "unknown", descriptor))
        }
    }

    /// Returns the sockets by name of their listener, for listeners that have one.
    ///
    /// - Throws: `ListenFailure` for a socket without a listener: connections to it would never be answered.
    func matched(to listeners: [String]) throws(ListenFailure) -> [String: Int32] {
        if sockets.count == 1, let only = sockets.first, Self.isUnnamed(only.name) { return ["proxy": only.descriptor] }
        var matched: [String: Int32] = [:]
        for (name, descriptor) in sockets {
            let takers = listeners.count { $0 == name }
            guard takers == 1, matched[name] == nil else {
                let cause = takers == 0 ? "nothing is called so" : "two are called so"
                throw ListenFailure(
                    address: "the socket named \(name)",
                    cause: "\(cause); FileDescriptorName= is one of \(listeners.joined(separator: ", ")), each once")
            }
            matched[name] = descriptor
        }
        return matched
    }

    /// True for the names that systemd gives to a socket without `FileDescriptorName=`.
    private static func isUnnamed(_ name: String) -> Bool { ["unknown", "connection", ""].contains(name) || name.hasSuffix(".socket") }
}
