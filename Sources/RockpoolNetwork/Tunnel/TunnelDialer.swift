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
        if upstream?.via != nil {
            let detail = "tunnels to \(origin.hostAndPort) would have to go through its parent proxy, which is not supported"
            return loop.makeFailedFuture(Refusal(status: 502, problem: "upstream-error", detail: detail))
        }
        let isAllowed = upstream != nil || isLocalClient
        return resolver.resolve(origin.host, port: origin.port, loopbackAllowed: isAllowed, on: loop).flatMap { addresses in
            connect(addresses[...], on: loop, initialize: initialize)
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
