// Connections to the far side of a tunnel: CONNECT to allowed ports, WebSocket upgrades to an origin (RFC 9110 §9.3.6, §7.8).
import Glibc
import HTTPTypes
import NIOCore
import NIOPosix
import NIOSSL
import RockpoolCore
import RockpoolEngine
import SwiftASN1
import Synchronization
import X509

/// Connects tunnels. Permission is checked before a packet is sent.
struct TunnelDialer: Sendable {
    let engine: Engine
    let resolver: AddressResolver
    let connectTimeout: TimeSpan
    let tunnels = OpenTunnels()
    /// The policy of the current configuration, which a reload may change.
    var ports: PortPolicy {
        let configuration = engine.configuration
        return PortPolicy(connectPorts: configuration.proxy.connectPorts, declared: configuration.upstreams.map(\.origin))
    }

    /// Returns a channel to `host:port` with reading disabled. Fails with `Refusal`, `TransferFailure` or the socket's error.
    func connect(host: String, port: Int, isLocalClient: Bool, client: ClientID?, on loop: any EventLoop) -> EventLoopFuture<any Channel> {
        let tunnel = engine.tunnels.begin(host: host, port: port)
        do { try ports.checkTunnel(host: host, port: port) } catch {
            note(error, of: tunnel)
            return loop.makeFailedFuture(error)
        }
        let dialed = dial(OriginAddress(scheme: .https, host: host, port: port), isLocalClient: isLocalClient, client: client, on: loop) {
            $0.eventLoop.makeSucceededVoidFuture()
        }
        dialed.whenFailure { note($0, of: tunnel) }
        return dialed.flatMapThrowing { channel in
            try channel.pipeline.syncOperations.addHandler(TunnelMeter(tunnel, in: engine.tunnels))
            return channel
        }
    }

    /// Records a tunnel that could not be opened.
    private func note(_ error: any Error, of tunnel: (record: TunnelRecord, at: Timestamp)) {
        var record = tunnel.record
        let failure = TransferFailure(connecting: error)
        record.failure =
            (error as? Refusal).map { ($0.status, $0.detail) } ?? (502, "\(failure.proxyErrorName): \(failure.detail)")
        engine.tunnels.note(record, at: tunnel.at)
    }

    /// Sends an upgrade request and waits for the head of its answer. Fails as `connect` does.
    func upgrade(
        _ request: RequestHead, original: HTTPFields, isLocalClient: Bool, client: ClientID?, on loop: any EventLoop
    ) -> EventLoopFuture<UpgradeAnswer> {
        let answer = loop.makePromise(of: UpgradeAnswer.self)
        let origin = request.origin
        let settings = engine.upstream(for: origin)?.tls ?? TLSSettings()
        let context: EventLoopFuture<NIOSSLContext?> =
            origin.scheme == .https ? settings.clientContext(on: loop).map { $0 } : loop.makeSucceededFuture(nil)
        let dialed = context.flatMap { context in
            dial(origin, isLocalClient: isLocalClient, client: client, on: loop) { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let context { try channel.speakTLS(with: origin.host, context: context) }
                    try channel.pipeline.syncOperations.addHandler(UpgradeHandler(answer, within: firstByteTimeout(of: origin)))
                }
            }
        }
        dialed.cascadeFailure(to: answer)
        dialed.whenSuccess { channel in
            channel.writeAndFlush(UpgradeHandler.serialize(request, upgrade: original), promise: nil)
            channel.read()
        }
        return answer.futureResult
    }

    private func firstByteTimeout(of origin: OriginAddress) -> TimeSpan {
        (engine.upstream(for: origin)?.timeouts ?? UpstreamTimeouts()).firstByte
    }

    /// Connects to an origin unless it is switched off or known to be away. Fails as `connect` does.
    /// - Parameter isCall: true to connect although it seems to be away.
    func dial(
        _ origin: OriginAddress, isLocalClient: Bool, client: ClientID?, isCall: Bool = false, on loop: any EventLoop,
        initialize: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) -> EventLoopFuture<any Channel> {
        let refusal = { @Sendable in isCall ? engine.refusalToCall(origin) : engine.refusalToConnect(to: origin) }
        if let reason = refusal() {
            return loop.makeFailedFuture(TransferFailure(kind: .unavailable, sent: .no, detail: reason))
        }
        return open(origin, isLocalClient: isLocalClient, client: client, on: loop, initialize: initialize).flatMapThrowing { channel in
            tunnels.add(channel, to: origin)
            // The network may have been switched off during the connection attempt.
            guard let reason = refusal() else { return channel }
            channel.close(promise: nil)
            throw TransferFailure(kind: .unavailable, sent: .no, detail: reason)
        }
    }

    private func open(
        _ origin: OriginAddress, isLocalClient: Bool, client: ClientID?, on loop: any EventLoop,
        initialize: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) -> EventLoopFuture<any Channel> {
        let upstream = engine.upstream(for: origin)
        let ways = engine.upstreams.proxies.ways(to: origin, of: upstream)
        if !ways.isEmpty {
            if upstream == nil, let refusal = resolver.addresses.refusal(ofTarget: origin.host, loopbackAllowed: isLocalClient) {
                return loop.makeFailedFuture(TransferFailure(kind: .denied, sent: .no, detail: refusal))
            }
            return dial(origin, throughOneOf: ways[...], client: client, on: loop, initialize: initialize)
        }
        let isAllowed = upstream != nil || isLocalClient
        return resolver.resolve(origin.host, port: origin.port, loopbackAllowed: isAllowed, for: client, on: loop).flatMap { addresses in
            addresses[...].firstConnected(on: loop) { open($0, on: loop, initialize: initialize) }
        }
    }

    /// Dials through the first of these parent proxies that takes it; fails with the failure of the last one tried.
    private func dial(
        _ origin: OriginAddress, throughOneOf ways: ArraySlice<ParentSettings>, client: ClientID?, on loop: any EventLoop,
        initialize: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) -> EventLoopFuture<any Channel> {
        guard let way = ways.first, let parent = ParentProxy(way.url) else {
            return loop.makeFailedFuture(TransferFailure(kind: .unavailable, sent: .no, detail: "no parent proxy"))
        }
        let rest = ways.dropFirst()
        let dialed = dial(origin, through: parent, credential: way.credential, client: client, on: loop, initialize: initialize)
        return dialed.flatMapError { error in
            let mayGoOn = engine.upstreams.proxies.fail(way, after: TransferFailure(connecting: error))
            guard mayGoOn, !rest.isEmpty else { return loop.makeFailedFuture(error) }
            return dial(origin, throughOneOf: rest, client: client, on: loop, initialize: initialize)
        }
    }

    /// Dials through a parent proxy, which the owner configured and which may have any address. Only `socks5` resolves the target's name
    /// locally.
    private func dial(
        _ origin: OriginAddress, through parent: ParentProxy, credential: ParentCredential?, client: ClientID?, on loop: any EventLoop,
        initialize: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) -> EventLoopFuture<any Channel> {
        if let credential, [.negotiate, .ntlm].contains(credential.auth) {
            let negotiated = NegotiatedTunnel(parent: parent, credential: credential, host: origin.host, port: origin.port)
            return negotiated.open(within: connectTimeout, on: loop).flatMap { socket in
                Self.bootstrap(on: loop, initialize: initialize).withConnectedSocket(socket)
            }
        }
        let target: EventLoopFuture<String> =
            parent.kind != .socks5
            ? loop.makeSucceededFuture(origin.host)
            : resolver.resolve(origin.host, port: origin.port, loopbackAllowed: true, for: client, on: loop).map {
                $0.first?.ipAddress ?? origin.host
            }
        let anywhere = AddressResolver(addresses: AddressPolicy(deny: []))
        return target.flatMap { host in
            anywhere.resolve(parent.address.host, port: parent.address.port, loopbackAllowed: true, on: loop).flatMap { addresses in
                ask(
                    parent, at: addresses, for: host, port: origin.port, credential: credential, on: loop, initialize: initialize)
            }
        }
    }

    /// Requests a tunnel from a parent proxy, at each of its addresses until one succeeds; fails with the last failure.
    func ask(
        _ parent: ParentProxy, at addresses: [SocketAddress], for host: String, port: Int, credential: ParentCredential? = nil,
        on loop: any EventLoop, initialize: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) -> EventLoopFuture<any Channel> {
        let context: EventLoopFuture<NIOSSLContext?> =
            parent.kind == .https ? TLSSettings().clientContext(on: loop).map { $0 } : loop.makeSucceededFuture(nil)
        return context.flatMap { context in
            addresses[...].firstConnected(on: loop) { address in
                // One promise per attempt: the failure of one address does not decide the next one.
                let stands = loop.makePromise(of: Void.self)
                let opened = open(address, on: loop) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        if let context { try channel.speakTLS(with: parent.address.host, context: context) }
                        let talk = ParentProxyTalk(parent.kind, host: host, port: port, credential: credential)
                        let limit = TimeAmount.milliseconds(connectTimeout.milliseconds)
                        try channel.pipeline.syncOperations.addHandler(ParentProxyHandler(talk, within: limit, stands))
                    }
                }
                opened.cascadeFailure(to: stands)
                return opened.flatMap { channel in
                    stands.futureResult.flatMap { initialize(channel) }.map { channel }.flatMapErrorThrowing { error in
                        channel.close(promise: nil)
                        throw error
                    }
                }
            }
        }
    }

    private func open(
        _ address: SocketAddress, on loop: any EventLoop, initialize: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) -> EventLoopFuture<any Channel> {
        Self.bootstrap(on: loop, initialize: initialize).connectTimeout(.milliseconds(connectTimeout.milliseconds)).connect(to: address)
    }

    private static func bootstrap(
        on loop: any EventLoop, initialize: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) -> ClientBootstrap {
        ClientBootstrap(group: loop)
            .channelOption(.autoRead, value: false)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelInitializer(initialize)
    }
}

/// TLS as a client of upstreams, where a connection is not libcurl's: always verified (docs/security-model.md#upstream-tls).
extension Channel {
    /// Starts TLS as a client of `host`, which the certificate must name in its subjectAltName (RFC 9525 §6.3). NIOSSL would also take the
    /// common name where there is no such extension, and for a name the address that it leads to. On the event loop only.
    func speakTLS(with host: String, context: NIOSSLContext) throws {
        let name = IPAddress(host) == nil ? host : nil
        try pipeline.syncOperations.addHandler(
            NIOSSLClientHandler._makeSSLClientHandler(context: context, serverHostname: name) { certificate, channel in
                channel.eventLoop.makeCompletedFuture {
                    let names = try Certificate(derEncoded: certificate.toDERBytes()).extensions.subjectAlternativeNames
                    guard names?.contains(where: { name == nil || $0.names(host) }) == true else {
                        throw TransferFailure(
                            kind: .tls, sent: .no,
                            detail: "the certificate does not name \(host) in its subjectAltName; its common name does not count")
                    }
                }
            })
    }
}

extension GeneralName {
    /// True for a DNS name that is `host`, which is in lower case, or has `*` in place of its first label (RFC 9525 §6.3).
    fileprivate func names(_ host: String) -> Bool {
        guard case .dnsName(let name) = self else { return false }
        let pattern = name.lowercased()
        guard pattern.hasPrefix("*."), let dot = host.firstIndex(of: ".") else { return pattern == host }
        return pattern.dropFirst() == host[dot...]
    }
}

extension TLSSettings {
    /// Creates a context off the event loop, because it may read files and parse over a hundred authorities.
    /// - Parameter protocols: those that are offered to the server (RFC 7301).
    func clientContext(offering protocols: [String] = [], on loop: any EventLoop) -> EventLoopFuture<NIOSSLContext> {
        NIOThreadPool.singleton.runIfActive(eventLoop: loop) { try clientContext(offering: protocols) }.flatMapErrorThrowing { error in
            throw TransferFailure(kind: .tls, sent: .no, detail: "TLS cannot be set up: \(error)")
        }
    }

    /// Verification is always on; NIOSSL's default minimum of TLS 1.0 is too low (docs/architecture.md#parts).
    private func clientContext(offering protocols: [String]) throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.applicationProtocols = protocols
        configuration.minimumTLSVersion = minVersion == "1.3" ? .tlsv13 : .tlsv12
        if let caFile { configuration.additionalTrustRoots = [.file(caFile)] }
        if let clientCert { configuration.certificateChain = try NIOSSLCertificate.fromPEMFile(clientCert).map { .certificate($0) } }
        if let clientKey { configuration.privateKey = .privateKey(try NIOSSLPrivateKey(file: clientKey, format: .pem)) }
        return try NIOSSLContext(configuration: configuration)
    }
}

/// Maps the errors of NIO connections to the failure kinds of other exchanges (RFC 9209 §2.3).
extension TransferFailure {
    /// Creates a failure in which nothing of the request was sent, because requests are sent after the handshake.
    init(connecting error: any Error) {
        switch error {
        case let failure as TransferFailure: self = failure
        case is NIOSSLError, is NIOSSLExtraError, is BoringSSLError:
            // A handshake that the network cut off is not a certificate error.
            let text = "\(error)".lowercased()
            let isCut = ["eof", "connection_reset", "uncleanshutdown"].contains { text.contains($0) }
            self.init(kind: isCut ? .reset : .tls, sent: .no, detail: "\(error)")
        case ChannelError.connectTimeout: self.init(kind: .connectTimeout, sent: .no, detail: "no answer to the connection")
        case let error as NIOConnectionError:
            self.init(connecting: error.connectionErrors.first?.error ?? ChannelError.connectPending)
        case let error as IOError where error.errnoCode == ECONNREFUSED:
            self.init(kind: .refused, sent: .no, detail: "the connection was refused")
        default: self.init(kind: .reset, sent: .no, detail: "\(error)")
        }
    }
}

/// The far sides of the tunnels of one server (docs/reference/behaviour.md#network-switch `/v1/network`).
final class OpenTunnels: Sendable {
    private let channels = Mutex<[ObjectIdentifier: (channel: any Channel, origin: OriginAddress)]>([:])

    var count: Int { channels.withLock(\.count) }

    /// Tracks a far side until it closes.
    func add(_ channel: any Channel, to origin: OriginAddress) {
        let key = ObjectIdentifier(channel)
        channels.withLock { $0[key] = (channel, origin) }
        channel.closeFuture.whenComplete { _ in self.channels.withLock { _ = $0.removeValue(forKey: key) } }
    }

    /// Closes the tunnels to the host and port of `origin`, all of them when nil.
    func end(to origin: OriginAddress?) {
        let open = channels.withLock { channels in
            channels.values.filter { origin == nil || ($0.origin.host == origin?.host && $0.origin.port == origin?.port) }.map(\.channel)
        }
        for channel in open { channel.close(promise: nil) }
    }
}
