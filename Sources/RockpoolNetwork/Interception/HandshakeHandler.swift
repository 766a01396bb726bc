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

/// Inspects the first byte within a tunnel to a host that is to be decrypted (RFC 8446 §5.1). A handshake is passed to TLS. Anything else,
/// such as `ws://`, which browsers also send through CONNECT, is forwarded to the host byte by byte: nothing of it can be cached, and
/// closing the tunnel would break a connection that works without the proxy.
final class FirstByteHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer

    /// The record type of a handshake, with which every ClientHello begins.
    static let handshake: UInt8 = 22

    /// The target of the CONNECT request.
    private let origin: OriginAddress
    private let service: ConnectionService
    private let isLocalClient: Bool
    private let hello: SNIHandler
    private let open: OpenConnection?
    /// The place of a tunnel among the exchanges under way.
    private var place: ExchangePlace?
    /// Bytes that wait for the connection to the host; nil before non-TLS data is detected, and after that connection is open.
    private var held: ByteBuffer?
    private var isInputClosed = false
    private var context: ChannelHandlerContext?

    /// - Parameter hello: receives the bytes of a handshake.
    init(_ hello: SNIHandler, origin: OriginAddress, service: ConnectionService, isLocalClient: Bool, open: OpenConnection?) {
        self.hello = hello
        self.open = open
        self.origin = origin
        self.service = service
        self.isLocalClient = isLocalClient
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        guard held == nil else {
            held?.writeBuffer(&bytes)
            return
        }
        guard let first = bytes.readableBytesView.first else { return }
        do {
            let pipeline = context.pipeline.syncOperations
            if first == Self.handshake {
                try pipeline.addHandler(ByteToMessageHandler(hello), position: .after(self))
                context.fireChannelRead(data)
                return pipeline.removeHandler(self, promise: nil)
            }
            held = bytes
            try pipeline.removeHandler(context: pipeline.context(handlerType: HandshakeHandler.self), promise: nil)
            dial(context: context)
        } catch {
            context.close(promise: nil)
        }
    }

    /// While the host is dialled, further bytes of the client stay in the socket.
    func read(context: ChannelHandlerContext) { if held == nil { context.read() } }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if held != nil, let event = event as? ChannelEvent, event == .inputClosed { isInputClosed = true }
        context.fireUserInboundEventTriggered(event)
    }

    private func dial(context: ChannelHandlerContext) {
        do throws(Refusal) { place = try open?.place(.tunnel) } catch { return dialed(.failure(error)) }
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        let dialed = service.dialer.connect(
            host: origin.host, port: origin.port, isLocalClient: isLocalClient, client: open?.account?.client, on: context.eventLoop)
        dialed.whenComplete { me.value.dialed($0) }
    }

    private func dialed(_ result: Result<any Channel, any Error>) {
        guard let context, let held else {
            if case .success(let peer) = result { peer.close(promise: nil) }
            return
        }
        self.held = nil
        switch result {
        case .success(let peer):
            do {
                peer.writeAndFlush(held, promise: nil)
                try Glue.join(context.channel, with: peer, at: place, idle: service.timeouts.tunnel, clientHasEnded: isInputClosed)
                context.pipeline.syncOperations.removeHandler(self, promise: nil)
                // The peer closed before it was joined.
                if !peer.isActive { context.close(promise: nil) }
            } catch {
                peer.close(promise: nil)
                context.close(promise: nil)
            }
        case .failure(let error):
            // The client has already received the 200 of CONNECT, so no error can be sent to it.
            let detail = (error as? Refusal)?.detail ?? TransferFailure(connecting: error).detail
            service.logger.notice("\(origin.hostAndPort) was sent no TLS, and cannot be reached: \(detail)")
            context.close(promise: nil)
        }
    }
}

/// Detects that a client rejected the certificate (RFC 8446 §6.2).
enum TrustAlert {
    /// The alerts about the certificate.
    private static let names = [
        "unknown_ca", "bad_certificate", "certificate_unknown", "certificate_expired", "certificate_revoked", "unsupported_certificate",
        "access_denied", "decrypt_error",
    ]

    /// The alerts by their numbers on the wire.
    private static let numbers: [UInt8: String] = [
        42: "bad_certificate", 43: "unsupported_certificate", 44: "certificate_revoked", 45: "certificate_expired",
        46: "certificate_unknown", 48: "unknown_ca", 49: "access_denied", 51: "decrypt_error",
    ]

    /// Returns the name of the plaintext alert in `record`. OpenSSL sends one in TLS 1.3 too, which BoringSSL reports as a broken record.
    static func name(of record: ByteBuffer) -> String? {
        let bytes = record.readableBytesView
        guard bytes.count >= 7, bytes.starts(with: [21, 3, 3, 0, 2, 2]) else { return nil }
        return numbers[bytes[bytes.startIndex + 6]]
    }

    /// Returns the alert in `error`, or `closed` for a client that closed without an alert; nil when the handshake failed for another
    /// reason.
    static func name(in error: any Error) -> String? {
        // BoringSSL's names are like `SSLV3_ALERT_BAD_CERTIFICATE`, `TLSV1_ALERT_UNKNOWN_CA`.
        let text = "\(error)".lowercased()
        if let name = names.first(where: { text.contains("alert_" + $0) }) { return name }
        guard case NIOSSLError.handshakeFailed = error else { return nil }
        return text.contains("eof") || text.contains("connection_reset") ? "closed" : nil
    }
}

/// Inspects the first byte of a connection (docs/guide/clients.md#passwords): a TLS handshake, or requests. Then it leaves the pipeline.
final class EncryptedProxyHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let service: ConnectionService
    private let open: OpenConnection?
    private var timer: Scheduled<Void>?

    init(service: ConnectionService, open: OpenConnection?) { (self.service, self.open) = (service, open) }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        timer = context.eventLoop.scheduleTask(in: .milliseconds(service.timeouts.head.milliseconds)) { channel.close(promise: nil) }
    }

    func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }

    func channelInactive(context: ChannelHandlerContext) {
        timer?.cancel()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard let first = unwrapInboundIn(data).readableBytesView.first else { return }
        do {
            if first == FirstByteHandler.handshake {
                try HandshakeHandler.beginListener(on: context.channel, service: service, open: open)
            } else {
                try service.installHTTP1(on: context.channel, open: open, wire: .plain)
            }
            context.fireChannelRead(data)
            context.pipeline.syncOperations.removeHandler(self, promise: nil)
        } catch {
            context.close(promise: nil)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        // No request was sent yet.
        case is DrainEvent: context.close(promise: nil)
        case let event as ChannelEvent where event == .inputClosed: context.close(promise: nil)
        default: context.fireUserInboundEventTriggered(event)
        }
    }
}
