// Opens the far side of a tunnel: CONNECT to allowed ports, WebSocket upgrades to an origin (RFC 9110 §9.3.6, §7.8).
import HTTPTypes
import NIOCore
import NIOPosix
import NIOSSL
import RockpoolCore
import RockpoolEngine

/// Connects tunnels. What may be reached is decided before a packet leaves.
struct TunnelDialer: Sendable {
    let engine: Engine
    let resolver: Resolver
    let ports: PortPolicy
    let connectTimeout: TimeSpan

    /// A channel to `host:port` that is not read yet. Fails with `Refusal`.
    func connect(host: String, port: Int, isLocalClient: Bool, on loop: any EventLoop) -> EventLoopFuture<any Channel> {
        do { try ports.checkTunnel(host: host, port: port) } catch { return loop.makeFailedFuture(error) }
        return dial(OriginAddress(scheme: .https, host: host, port: port), isLocalClient: isLocalClient, on: loop) {
            $0.eventLoop.makeSucceededVoidFuture()
        }
    }

    /// Sends an upgrade request and waits for the head of its answer. Fails with `Refusal`.
    func upgrade(
        _ request: RequestHead, _ original: HTTPFields, isLocalClient: Bool, on loop: any EventLoop
    ) -> EventLoopFuture<UpgradeAnswer> {
        let answer = loop.makePromise(of: UpgradeAnswer.self)
        let origin = request.origin
        let dialed = dial(origin, isLocalClient: isLocalClient, on: loop) { channel in
            channel.eventLoop.makeCompletedFuture {
                if origin.scheme == .https {
                    let tls = try engine.upstream(for: origin)?.tls.clientContext() ?? TLSSettings().clientContext()
                    try channel.pipeline.syncOperations.addHandler(
                        NIOSSLClientHandler(context: tls, serverHostname: IPAddress(origin.host) == nil ? origin.host : nil))
                }
                try channel.pipeline.syncOperations.addHandler(UpgradeHandler(answer, within: firstByteTimeout(of: origin)))
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

    private func dial(
        _ origin: OriginAddress, isLocalClient: Bool, on loop: any EventLoop,
        initialize: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) -> EventLoopFuture<any Channel> {
        if let reason = engine.refusalToConnect(to: origin) {
            return loop.makeFailedFuture(Refusal(status: 503, problem: "upstream-error", detail: reason))
        }
        let upstream = engine.upstream(for: origin)
        if let parent = upstream?.via.flatMap({ ParentProxy($0) }) {
            return dial(origin, through: parent, on: loop, initialize: initialize)
        }
        let isAllowed = upstream != nil || isLocalClient
        return resolver.resolve(origin.host, port: origin.port, loopbackAllowed: isAllowed, on: loop).flatMap { addresses in
            connect(addresses[...], on: loop, initialize: initialize)
        }
    }

    /// The same through a parent proxy, which is the owner's and may be anywhere. Only `socks5` has the name resolved here.
    private func dial(
        _ origin: OriginAddress, through parent: ParentProxy, on loop: any EventLoop,
        initialize: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) -> EventLoopFuture<any Channel> {
        let target: EventLoopFuture<String> =
            parent.kind != .socks5
            ? loop.makeSucceededFuture(origin.host)
            : resolver.resolve(origin.host, port: origin.port, loopbackAllowed: true, on: loop).map { $0.first?.ipAddress ?? origin.host }
        let anywhere = Resolver(addresses: AddressPolicy(deny: []))
        return target.flatMap { host in
            anywhere.resolve(parent.address.host, port: parent.address.port, loopbackAllowed: true, on: loop).flatMap { addresses in
                let stands = loop.makePromise(of: Void.self)
                let channel = connect(addresses[...], on: loop) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        if parent.kind == .https {
                            let name = IPAddress(parent.address.host) == nil ? parent.address.host : nil
                            try channel.pipeline.syncOperations.addHandler(
                                NIOSSLClientHandler(context: TLSSettings().clientContext(), serverHostname: name))
                        }
                        let talk = ParentProxyTalk(parent.kind, host: host, port: origin.port)
                        let limit = TimeAmount.milliseconds(connectTimeout.milliseconds)
                        try channel.pipeline.syncOperations.addHandler(ParentProxyHandler(talk, within: limit, stands))
                    }
                }
                channel.cascadeFailure(to: stands)
                return channel.flatMap { channel in stands.futureResult.flatMap { initialize(channel) }.map { channel } }
            }
        }
    }

    /// Tries the addresses one after the other.
    private func connect(
        _ addresses: ArraySlice<SocketAddress>, on loop: any EventLoop,
        initialize: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) -> EventLoopFuture<any Channel> {
        guard let first = addresses.first else { return loop.makeFailedFuture(ChannelError.connectPending) }
        let rest = addresses.dropFirst()
        let attempt = ClientBootstrap(group: loop)
            .channelOption(.autoRead, value: false)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .connectTimeout(.milliseconds(connectTimeout.milliseconds))
            .channelInitializer(initialize)
            .connect(to: first)
        return attempt.flatMapError { error in
            rest.isEmpty ? loop.makeFailedFuture(error) : connect(rest, on: loop, initialize: initialize)
        }
    }
}

extension TLSSettings {
    /// Verification always on; NIOSSL's own floor of TLS 1.0 is too low (design §6).
    func clientContext() throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = minVersion == "1.3" ? .tlsv13 : .tlsv12
        if let caFile { configuration.additionalTrustRoots = [.file(caFile)] }
        if let clientCert { configuration.certificateChain = try NIOSSLCertificate.fromPEMFile(clientCert).map { .certificate($0) } }
        if let clientKey { configuration.privateKey = .privateKey(try NIOSSLPrivateKey(file: clientKey, format: .pem)) }
        return try NIOSSLContext(configuration: configuration)
    }
}
