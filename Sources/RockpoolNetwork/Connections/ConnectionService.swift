// The dependencies shared by all connections of a listener: the engine, the limits, the tunnel dialer.
import HTTPTypes
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
package import RockpoolCore
import RockpoolEngine

/// Shared by the connections of one listener.
final class ConnectionService: Sendable {
    let engine: Engine
    let resolution: TargetResolution
    let timeouts: ClientTimeouts
    let limits: ClientLimits
    /// The proxy's name in `Via`, unique per instance.
    let viaName: String
    let dialer: TunnelDialer
    let relays: RelayPools
    /// Certificates for decrypted tunnels.
    let contexts: LeafContexts
    let connections: OpenConnections
    /// Where idle connections are without a channel.
    let resting: RestingConnections
    let logger: Logger

    init(
        engine: Engine, resolution: TargetResolution, timeouts: ClientTimeouts, limits: ClientLimits, viaName: String, dialer: TunnelDialer,
        relays: RelayPools, contexts: LeafContexts, connections: OpenConnections, resting: RestingConnections, logger: Logger
    ) {
        self.engine = engine
        self.resolution = resolution
        self.timeouts = timeouts
        self.limits = limits
        self.viaName = viaName
        self.dialer = dialer
        self.relays = relays
        self.contexts = contexts
        self.connections = connections
        self.resting = resting
        self.logger = logger
    }

    /// True if stored replies may be sent before a request is decoded; not while every exchange is logged, because these are not, nor where
    /// clients need a password.
    var answersAtOnce: Bool { logger.logLevel > .debug && !engine.recordsEveryExchange && passwords == nil }

    /// Returns the service for requests within a decrypted tunnel to `origin`.
    func inside(_ origin: OriginAddress) -> ConnectionService {
        with(TargetResolution(role: .intercepted(origin), ports: resolution.ports, listener: origin.url, ownPorts: resolution.ownPorts))
    }

    /// Returns the service for requests whose origin is named by `Host` alone.
    func byHost() -> ConnectionService {
        with(TargetResolution(role: .transparent, ports: resolution.ports, listener: resolution.listener, ownPorts: resolution.ownPorts))
    }

    private func with(_ resolution: TargetResolution) -> ConnectionService {
        ConnectionService(
            engine: engine, resolution: resolution, timeouts: timeouts, limits: limits, viaName: viaName, dialer: dialer, relays: relays,
            contexts: contexts, connections: connections, resting: resting, logger: logger)
    }

    /// Installs the HTTP/1 handlers on a channel. `wire` is the transport of its bytes; `past` is nil for a connection that has not rested.
    func installHTTP1(
        on channel: any Channel, open: OpenConnection?, wire: ReplyWire, after past: RestingConnections.Past? = nil
    ) throws {
        var decoding = NIOHTTPDecoderLimitConfiguration()
        decoding.maxHeaderFieldSize = Int(clamping: limits.fieldBytes.bytes)
        decoding.maxHeaderListSize = Int(clamping: limits.headBytes.bytes)
        decoding.maxHeaderFieldCount = limits.fields
        let decoder = HTTPRequestDecoder(
            leftOverBytesStrategy: .forwardBytes, informationalResponseStrategy: .drop, limitConfiguration: decoding)
        let connection = ConnectionHandler(service: self, open: open, wire: wire, past: past)
        try channel.pipeline.syncOperations.addHandlers([
            FastPathHandler(connection, on: channel.eventLoop), ByteToMessageHandler(decoder), connection,
        ])
    }
}

/// The role of a listener.
package enum ListenerRole: Sendable {
    /// Any origin, named by the request's target.
    case proxy
    /// Any target, named by a SOCKS handshake.
    case socks
    /// Any target, named by the address of a redirected connection, and by `Host`.
    case transparent
    /// One or several declared upstreams.
    case gateway(GatewayDoor)
    /// The origin of a decrypted tunnel.
    case intercepted(OriginAddress)
}

/// The admission of a request to the proxy by `Proxy-Authorization` (RFC 9110 §11.7, RFC 7617; docs/security-model.md#proxy-passwords).
extension ConnectionService {
    /// Comparisons of hashes, one at a time: they must not delay files and certificates, which share NIO's threads.
    private static let thread: NIOThreadPool = {
        let thread = NIOThreadPool(numberOfThreads: 1)
        thread.start()
        return thread
    }()

    /// True for the listener of the proxy itself, not for requests in its tunnels.
    var isProxy: Bool { if case .proxy = resolution.role { true } else { false } }

    /// The passwords that requests of this service owe; nil if they owe none.
    var passwords: ProxyPasswords? { isProxy ? engine.proxyPasswords : nil }

    /// True for a name by which other machines may know this one.
    func isThisMachine(_ host: String) -> Bool {
        let machine = LeafContexts.machine.lowercased()
        return OriginAddress.isLoopback(host) || host == machine || host.hasPrefix(machine + ".")
            || engine.configuration.admin.hosts.contains { $0.lowercased() == host }
    }

    /// Judges a request by its fields; they lose nothing, because the field is of this hop only.
    func admission(_ fields: HTTPFields, on channel: any Channel, wire: ReplyWire) -> ProxyAdmission {
        guard let passwords else { return .admitted }
        guard wire != .plain || channel.isFromThisMachine else {
            let detail = "passwords are not taken unencrypted from other machines: use the proxy by https://, and trust its certificate"
            return .refused(engine.problem(for: Refusal(status: 403, problem: "tls-required", detail: detail)))
        }
        guard let given = fields[.proxyAuthorization].flatMap({ NameAndPassword(basic: $0) }) else { return .refused(challenge) }
        let address = channel.addressForAttempts
        switch passwords.standing(of: given, from: address) {
        case .right: return .admitted
        case .limited(let seconds): return .refused(tooMany(seconds))
        case .unproved:
            return .open { await Self.isRight(given, from: address, passwords) ? nil : self.challenge }
        }
    }

    /// Judges the name and password of a SOCKS client, which cannot be encrypted.
    func admits(_ given: NameAndPassword, on channel: any Channel) -> EventLoopFuture<Bool> {
        let loop = channel.eventLoop
        guard let passwords = engine.proxyPasswords, channel.isFromThisMachine else { return loop.makeSucceededFuture(false) }
        let address = channel.addressForAttempts
        switch passwords.standing(of: given, from: address) {
        case .right: return loop.makeSucceededFuture(true)
        case .limited: return loop.makeSucceededFuture(false)
        case .unproved: return Self.thread.runIfActive(eventLoop: loop) { passwords.verify(given, from: address) }
        }
    }

    private static func isRight(_ given: NameAndPassword, from address: String?, _ passwords: ProxyPasswords) async -> Bool {
        (try? await thread.runIfActive { passwords.verify(given, from: address) }) ?? false
    }

    private var challenge: Reply {
        let detail = "send a name and a password of the file in proxy.auth (curl: --proxy-user NAME:PASSWORD)"
        var reply = engine.problem(for: Refusal(status: 407, problem: "proxy-unauthorized", detail: detail))
        reply.head.fields[.proxyAuthenticate] = #"Basic realm="rockpool", charset="UTF-8""#
        return reply
    }

    private func tooMany(_ seconds: Int64) -> Reply {
        let detail = "too many passwords of this client were wrong; a right one is taken again in \(seconds) s"
        var reply = engine.problem(for: Refusal(status: 429, problem: "too-many-attempts", detail: detail))
        reply.head.fields[.retryAfter] = "\(seconds)"
        return reply
    }
}

extension Channel {
    /// True for a client on this machine: by loopback, or by another address of this machine.
    fileprivate var isFromThisMachine: Bool { isClientLocal || remoteAddress?.ipAddress == localAddress?.ipAddress }

    /// Nil for a client on this machine.
    fileprivate var addressForAttempts: String? { isFromThisMachine ? nil : remoteAddress?.ipAddress }
}
