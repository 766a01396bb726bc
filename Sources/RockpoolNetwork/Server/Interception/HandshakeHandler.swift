// The phase from CONNECT's 200 to the first decrypted byte: the TLS handshake, its deadline, and the negotiated protocol (RFC 7301).
import Logging
import NIOCore
import NIOSSL
import NIOTLS
import RockpoolCore
import RockpoolEngine

/// Follows the TLS handler until the client's first decrypted bytes. In TLS 1.3 the server's side of the handshake ends before the client
/// has verified the certificate: only those bytes prove that the client accepted it.
final class HandshakeHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// The target of the CONNECT request.
    private let origin: OriginAddress
    private let service: ConnectionService
    private let open: OpenConnection?
    private var timer: Scheduled<Void>?
    /// True if the client was shown a certificate: only then can a failure be a rejection of it.
    private var hasContext = false
    private var isOver = false
    /// The alert that arrived in plaintext.
    private var alert: String?

    init(origin: OriginAddress, service: ConnectionService, open: OpenConnection?) {
        self.origin = origin
        self.service = service
        self.open = open
    }

    /// Adds TLS to a channel after its client received the 200 of CONNECT. The handlers of the old pipeline must be removed after this.
    static func begin(
        on channel: any Channel, origin: OriginAddress, service: ConnectionService, isLocalClient: Bool, open: OpenConnection?
    ) throws {
        let handshake = HandshakeHandler(origin: origin, service: service, open: open)
        let me = NIOLoopBound(handshake, eventLoop: channel.eventLoop)
        let hello = SNIHandler { result in me.value.startTLS(on: channel, hello: result) }
        let first = FirstByteHandler(hello, origin: origin, service: service, isLocalClient: isLocalClient, open: open)
        try channel.pipeline.syncOperations.addHandlers([first, handshake])
    }

    /// Adds TLS to a connection of a listener. Without a name of the client, the certificate is that of the listener's address.
    static func beginListener(on channel: any Channel, service: ConnectionService, open: OpenConnection?) throws {
        let address = channel.localAddress
        let origin = OriginAddress(scheme: .https, host: address?.ipAddress ?? "localhost", port: address?.port)
        let handshake = HandshakeHandler(origin: origin, service: service, open: open)
        let me = NIOLoopBound(handshake, eventLoop: channel.eventLoop)
        let hello = SNIHandler { result in me.value.startTLS(on: channel, hello: result) }
        try channel.pipeline.syncOperations.addHandlers([ByteToMessageHandler(hello), handshake])
    }

    /// Adds TLS to a channel whose client has been read up to its name.
    static func begin(
        after hello: SNIResult, on channel: any Channel, origin: OriginAddress, service: ConnectionService, open: OpenConnection?
    ) -> EventLoopFuture<Void> {
        let handshake = HandshakeHandler(origin: origin, service: service, open: open)
        do { try channel.pipeline.syncOperations.addHandler(handshake) } catch { return channel.eventLoop.makeFailedFuture(error) }
        return handshake.startTLS(on: channel, hello: hello)
    }

    /// Creates the certificate for the client's SNI name if that host may also be decrypted, otherwise for CONNECT's host, by which the
    /// requests are judged: no certificate is issued for a name that neither CONNECT nor the configuration contains
    /// (docs/security-model.md#certificate-authority).
    private func startTLS(on channel: any Channel, hello: SNIResult) -> EventLoopFuture<Void> {
        let name = hello.host.map { $0.lowercased() }.flatMap { isNamed($0) ? $0 : nil } ?? origin.host
        let me = NIOLoopBound(self, eventLoop: channel.eventLoop)
        return service.contexts.context(for: name, offersHTTP2: !service.isProxy, on: channel.eventLoop).flatMapThrowing { context in
            me.value.hasContext = true
            let pipeline = channel.pipeline.syncOperations
            let position = try pipeline.context(handlerType: ByteToMessageHandler<SNIHandler>.self).handler
            try pipeline.addHandlers(
                [PlainAlerts { me.value.alert = $0 }, NIOSSLServerHandler(context: context)], position: .after(position))
        }.flatMapErrorThrowing { error in
            me.value.service.logger.error("no certificate for \(name): \(error)")
            channel.close(promise: nil)
            throw error
        }
    }

    private func isNamed(_ host: String) -> Bool {
        host == origin.host || service.resolution.names(host) || service.isProxy && service.isThisMachine(host)
            || service.engine.configuration.interception(host: host, port: origin.port).isDecrypted
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        timer = context.eventLoop.scheduleTask(in: .milliseconds(service.timeouts.head.milliseconds)) { channel.close(promise: nil) }
    }

    func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case TLSUserEvent.handshakeCompleted(let negotiated): finish(negotiated: negotiated, context: context)
        // No request was sent yet.
        case is DrainEvent where !isOver: context.close(promise: nil)
        case let event as ChannelEvent where event == .inputClosed && !isOver: context.close(promise: nil)
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    private func finish(negotiated: String?, context: ChannelHandlerContext) {
        isOver = true
        timer?.cancel()
        do {
            if negotiated == "h2" {
                try HTTP2Connection.install(on: context.channel, service: service, open: open)
            } else {
                open?.noteIdle(since: .now())
                try service.installHTTP1(on: context.channel, open: open, wire: .tls)
            }
        } catch {
            context.close(promise: nil)
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        service.engine.untrusting.forget(host: origin.host, client: Self.client(of: context.channel))
        context.fireChannelRead(data)
        let pipeline = context.pipeline.syncOperations
        if let alerts = try? pipeline.context(handlerType: PlainAlerts.self) { pipeline.removeHandler(context: alerts, promise: nil) }
        pipeline.removeHandler(self, promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // By the setup host a browser only asks whether it trusts us.
        if hasContext, origin.host != SetupDocument.host, let alert = alert ?? TrustAlert.name(in: error) {
            let client = Self.client(of: context.channel)
            let yields = service.engine.configuration.interception(host: origin.host, port: origin.port).yields
            let noted = service.engine.untrusting.note(
                host: origin.host, client: client, at: service.engine.now(), alert: alert, mayBypass: yields)
            if noted.isNews {
                let after = noted.isBypassed ? "; its tunnels there are passed undecrypted for \(UntrustingClients.bypass)" : ""
                service.logger.notice(
                    "\(client) did not take our certificate for \(origin.host) (\(alert))\(after); see rockpool ca install")
            }
        }
        context.close(promise: nil)
    }

    static func client(of channel: any Channel) -> String { channel.remoteAddress?.ipAddress ?? "" }
}

/// Inspects the bytes before the TLS handler, until something has been decrypted.
private final class PlainAlerts: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private let hear: (String) -> Void

    init(_ hear: @escaping (String) -> Void) { self.hear = hear }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if let name = TrustAlert.name(of: unwrapInboundIn(data)) { hear(name) }
        context.fireChannelRead(data)
    }
}

extension SNIResult {
    /// The SNI name of the ClientHello in lower case, if it is a valid host.
    var host: String? {
        guard case .hostname(let name) = self, let authority = try? Authority.parse(name[...]), authority.port == nil else { return nil }
        return authority.host
    }
}
