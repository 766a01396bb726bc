// Connections that become tunnels: CONNECT and WebSocket upgrades (RFC 9110 §9.3.6, §7.8).
import HTTPTypes
import NIOCore
import NIOHTTP1
import RockpoolCore
import RockpoolEngine

/// Hands a connection over to a tunnel: decrypted, forwarded, or upgraded. On the event loop only.
struct TunnelHandover {
    let connection: ConnectionHandler

    private static let established = ByteBuffer(staticString: "HTTP/1.1 200 Connection established\r\n\r\n")

    /// Decrypts the tunnel if the configuration says so, reads it if its target speaks HTTP without TLS, otherwise forwards its bytes. Throws
    /// `Refusal` for a port that tunnels may not use.
    func connect(host: String, port: Int, context: ChannelHandlerContext) throws(Refusal) {
        let interception = connection.service.engine.configuration.interception(host: host, port: port)
        guard interception.isDecrypted, !(interception.yields && isBypassed(host: host, port: port, context: context)) else {
            let target = KnownTarget(host: host, port: port, service: connection.service, mayBeTunnel: true)
            // Some clients open a tunnel for `http://` too.
            guard target.isDeclaredForHTTP, case .inspect = try target.course() else {
                return try openTunnel(host: host, port: port, context: context)
            }
            return establish(context: context) { [connection] channel in
                try channel.pipeline.syncOperations.addHandler(FirstBytesHandler(target, open: connection.open))
            }
        }
        try connection.service.dialer.ports.checkTunnel(host: host, port: port)
        let origin = OriginAddress(scheme: .https, host: host, port: port)
        establish(context: context) { [connection] channel in
            try HandshakeHandler.begin(
                on: channel, origin: origin, service: connection.service.inside(origin), isLocalClient: channel.isClientLocal,
                open: connection.open)
        }
    }

    /// Answers 200 and opens no connection: the upstream may be unreachable, and the requests inside may not need it.
    /// - Parameter begin: adds the handlers of the bytes inside.
    private func establish(context: ChannelHandlerContext, begin: @escaping (any Channel) throws -> Void) {
        connection.isLeaving = true
        connection.timer.cancel()
        write(Self.established, context: context)
        connection.logTunnel()
        let me = NIOLoopBound((self, begin), eventLoop: context.eventLoop)
        // Deferred until the decoder has passed on the end of this request.
        context.eventLoop.execute { me.value.0.leave(to: me.value.1) }
    }

    /// True if a client at this address has recently rejected the certificate for this host. False while the host cannot be reached, because a tunnel would fail, and a client that trusts the certificate is served from the store.
    private func isBypassed(host: String, port: Int, context: ChannelHandlerContext) -> Bool {
        let engine = connection.service.engine
        guard engine.refusalToConnect(to: OriginAddress(scheme: .https, host: host, port: port)) == nil else { return false }
        return engine.untrusting.isBypassed(host: host, client: HandshakeHandler.client(of: context.channel), at: engine.now())
    }

    private func write(_ bytes: ByteBuffer, context: ChannelHandlerContext) {
        context.writeAndFlush(NIOAny(IOData.byteBuffer(bytes)), promise: nil)
    }

    /// Replaces the handlers; the decoder's unparsed bytes are the first inside.
    private func leave(to begin: (any Channel) throws -> Void) {
        guard let context = connection.context else { return }
        let channel = context.channel
        guard !connection.isInputClosed else { return channel.close(promise: nil) }
        do {
            let pipeline = channel.pipeline.syncOperations
            try begin(channel)
            try pipeline.removeHandler(context: pipeline.context(handlerType: FastPathHandler.self), promise: nil)
            try pipeline.removeRequestDecoder()
            pipeline.removeHandler(connection, promise: nil)
            channel.read()
        } catch {
            channel.close(promise: nil)
        }
    }

    private func openTunnel(host: String, port: Int, context: ChannelHandlerContext) throws(Refusal) {
        let place = try connection.place(.tunnel)
        connection.current = CurrentExchange(number: connection.requests, body: nil, expectsContinue: false, isOldClient: false)
        connection.current?.place = place
        connection.opensTunnel = true
        connection.enter(.answering, context: context)
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        let origin = OriginAddress(scheme: .https, host: host, port: port)
        connection.service.dialer.connect(
            host: host, port: port, isLocalClient: context.channel.isClientLocal, client: connection.client,
            on: context.eventLoop
        )
        .whenComplete {
            me.value.tunnelDialed($0, origin: origin)
        }
    }

    private func tunnelDialed(_ result: Result<any Channel, any Error>, origin: OriginAddress) {
        guard let context = connection.context else {
            if case .success(let peer) = result { peer.close(promise: nil) }
            return
        }
        switch result {
        case .success(let peer):
            write(Self.established, context: context)
            connection.logTunnel()
            becomeTunnel(to: peer, context: context)
        case .failure(let error): fail(error, connectingTo: origin, context: context)
        }
    }

    private func fail(_ error: any Error, connectingTo origin: OriginAddress, context: ChannelHandlerContext) {
        connection.current = nil
        connection.opensTunnel = false
        if let refusal = error as? Refusal { return connection.refuse(refusal, context: context) }
        connection.end(
            with: connection.service.engine.problem(for: TransferFailure(connecting: error), connectingTo: origin), context: context)
    }

    func upgrade(_ request: RequestHead, incoming: IncomingHead, context: ChannelHandlerContext) throws(Refusal) {
        let place = try connection.place(.tunnel)
        connection.current = CurrentExchange(number: connection.requests, body: nil, expectsContinue: false, isOldClient: false)
        connection.current?.place = place
        connection.opensTunnel = true
        connection.enter(.answering, context: context)
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        connection.service.dialer.upgrade(
            request, original: incoming.fields, isLocalClient: context.channel.isClientLocal, client: connection.client,
            on: context.eventLoop
        ).whenComplete { me.value.upgraded($0, origin: request.origin) }
    }

    private func upgraded(_ result: Result<UpgradeAnswer, any Error>, origin: OriginAddress) {
        guard let context = connection.context else {
            if case .success(let answer) = result { answer.channel.close(promise: nil) }
            return
        }
        switch result {
        case .success(let answer):
            var buffer = context.channel.allocator.buffer(capacity: 512)
            answer.write(into: &buffer)
            write(buffer, context: context)
            connection.logTunnel(answer.head.status)
            becomeTunnel(to: answer.channel, context: context, isOneWay: !answer.isSwitching)
        case .failure(let error): fail(error, connectingTo: origin, context: context)
        }
    }

    /// Replaces the handlers with two joined channels; the decoder's unparsed bytes are sent to the peer first.
    private func becomeTunnel(to peer: any Channel, context: ChannelHandlerContext, isOneWay: Bool = false) {
        connection.timer.cancel()
        connection.isLeaving = true
        let channel = context.channel
        do {
            try Glue.join(
                channel, with: peer, at: connection.current?.place, idle: connection.service.timeouts.tunnel, isOneWay: isOneWay,
                clientHasEnded: connection.isInputClosed)
            try channel.pipeline.syncOperations.removeRequestDecoder()
            channel.pipeline.syncOperations.removeHandler(connection, promise: nil)
        } catch {
            peer.close(promise: nil)
            context.close(promise: nil)
        }
    }
}

extension ConnectionHandler {
    /// The change of this connection into a tunnel.
    var tunnel: TunnelHandover { TunnelHandover(connection: self) }
}

extension Channel {
    /// True if the client is on this machine, or has no address.
    var isClientLocal: Bool { remoteAddress.flatMap { IPAddress($0) }.map(\.meansLoopback) ?? true }
}

/// The comparison of a password before a connection becomes a tunnel (docs/security-model.md#proxy-passwords).
extension TunnelHandover {
    /// Runs `proceed` after the password was found right; refuses the request otherwise.
    func admit(
        _ incoming: IncomingHead, by check: @escaping @Sendable () async -> Reply?, context: ChannelHandlerContext,
        proceed: @escaping (ChannelHandlerContext) throws(Refusal) -> Void
    ) {
        let number = connection.requests
        connection.current = CurrentExchange(number: number, body: nil, expectsContinue: false, isOldClient: incoming.isOldClient)
        connection.opensTunnel = true
        connection.enter(.answering, context: context)
        let me = NIOLoopBound((self, proceed), eventLoop: context.eventLoop)
        let loop = context.eventLoop
        connection.current?.task = Task {
            let refusal = await check()
            loop.execute { me.value.0.admitted(number, refusal: refusal, proceed: me.value.1) }
        }
    }

    private func admitted(_ number: Int, refusal: Reply?, proceed: (ChannelHandlerContext) throws(Refusal) -> Void) {
        guard let context = connection.context, let waiting = connection.current, waiting.number == number else { return }
        (connection.current, connection.opensTunnel) = (nil, false)
        if let refusal { return connection.end(with: refusal, context: context) }
        do throws(Refusal) { try proceed(context) } catch { return connection.refuse(error, context: context) }
        // The end of the request has arrived during the check.
        if waiting.isRequestEnded { connection.current?.isRequestEnded = true }
    }
}
