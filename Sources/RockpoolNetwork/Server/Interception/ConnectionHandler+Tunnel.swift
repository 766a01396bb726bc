// Connections that become tunnels: CONNECT and WebSocket upgrades (RFC 9110 §9.3.6, §7.8).
import HTTPTypes
import NIOCore
import NIOHTTP1
import RockpoolCore
import RockpoolEngine

extension ConnectionHandler {
    /// Decrypts the tunnel if the configuration says so, otherwise forwards its bytes. Throws `Refusal` for a port that tunnels may not
    /// use.
    func connect(host: String, port: Int, _ context: ChannelHandlerContext) throws(Refusal) {
        let interception = service.engine.configuration.interception(host: host, port: port)
        guard interception.isDecrypted, !(interception.yields && isBypassed(host, port, context)) else {
            return openTunnel(host: host, port: port, context)
        }
        try service.dialer.ports.checkTunnel(host: host, port: port)
        // No connection is opened: the upstream may be unreachable, and the requests inside may not need it.
        isLeaving = true
        timer?.cancel()
        write(Self.established, context)
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        // Deferred until the decoder has passed on the end of this request.
        context.eventLoop.execute { me.value.becomeTLS(OriginAddress(scheme: .https, host: host, port: port)) }
    }

    /// True if a client at this address has recently rejected the certificate for this host. False while the host cannot be reached,
    /// because a tunnel would fail, and a client that trusts the certificate is served from the store.
    private func isBypassed(_ host: String, _ port: Int, _ context: ChannelHandlerContext) -> Bool {
        let engine = service.engine
        guard engine.refusalToConnect(to: OriginAddress(scheme: .https, host: host, port: port)) == nil else { return false }
        return engine.untrusting.isBypassed(host: host, client: HandshakeHandler.client(of: context.channel), at: engine.now())
    }

    func isLocal(_ channel: any Channel) -> Bool {
        channel.remoteAddress.flatMap { IPAddress($0) }.map(\.meansLoopback) ?? true
    }

    private static let established = ByteBuffer(staticString: "HTTP/1.1 200 Connection established\r\n\r\n")

    private func write(_ bytes: ByteBuffer, _ context: ChannelHandlerContext) {
        context.writeAndFlush(wrapOutboundOut(.byteBuffer(bytes)), promise: nil)
    }

    /// Replaces the handlers with TLS; the decoder's unparsed bytes are the first of the handshake.
    private func becomeTLS(_ origin: OriginAddress) {
        guard let context else { return }
        let channel = context.channel
        guard !isInputClosed else { return channel.close(promise: nil) }
        do {
            let pipeline = channel.pipeline.syncOperations
            try HandshakeHandler.begin(
                on: channel, origin: origin, service: service.inside(origin), isLocalClient: isLocal(channel), open: open)
            try pipeline.removeHandler(context: pipeline.context(handlerType: FastPathHandler.self), promise: nil)
            try pipeline.removeRequestDecoder()
            pipeline.removeHandler(self, promise: nil)
            channel.read()
        } catch {
            channel.close(promise: nil)
        }
    }

    private func openTunnel(host: String, port: Int, _ context: ChannelHandlerContext) {
        current = CurrentExchange(number: requests, body: nil, expectsContinue: false, isOldClient: false)
        opensTunnel = true
        enter(.answering, context)
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        let origin = OriginAddress(scheme: .https, host: host, port: port)
        service.dialer.connect(host: host, port: port, isLocalClient: isLocal(context.channel), on: context.eventLoop).whenComplete {
            me.value.tunnelDialed($0, origin)
        }
    }

    private func tunnelDialed(_ result: Result<any Channel, any Error>, _ origin: OriginAddress) {
        guard let context else {
            if case .success(let peer) = result { peer.close(promise: nil) }
            return
        }
        switch result {
        case .success(let peer):
            write(Self.established, context)
            becomeTunnel(to: peer, context)
        case .failure(let error): fail(error, connectingTo: origin, context)
        }
    }

    private func fail(_ error: any Error, connectingTo origin: OriginAddress, _ context: ChannelHandlerContext) {
        current = nil
        opensTunnel = false
        if let refusal = error as? Refusal { return refuse(refusal, context) }
        end(with: service.engine.problem(for: TransferFailure(connecting: error), connectingTo: origin), context)
    }

    func upgrade(_ request: RequestHead, _ incoming: IncomingHead, _ context: ChannelHandlerContext) {
        current = CurrentExchange(number: requests, body: nil, expectsContinue: false, isOldClient: false)
        opensTunnel = true
        enter(.answering, context)
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        service.dialer.upgrade(
            request, incoming.fields, isLocalClient: isLocal(context.channel), on: context.eventLoop
        ).whenComplete { me.value.upgraded($0, request.origin) }
    }

    private func upgraded(_ result: Result<UpgradeAnswer, any Error>, _ origin: OriginAddress) {
        guard let context else {
            if case .success(let answer) = result { answer.channel.close(promise: nil) }
            return
        }
        switch result {
        case .success(let answer):
            var buffer = context.channel.allocator.buffer(capacity: 512)
            answer.write(into: &buffer)
            context.writeAndFlush(wrapOutboundOut(.byteBuffer(buffer)), promise: nil)
            becomeTunnel(to: answer.channel, context, isOneWay: !answer.isSwitching)
        case .failure(let error): fail(error, connectingTo: origin, context)
        }
    }

    /// Replaces the handlers with two joined channels; the decoder's unparsed bytes are sent to the peer first.
    private func becomeTunnel(to peer: any Channel, _ context: ChannelHandlerContext, isOneWay: Bool = false) {
        timer?.cancel()
        isLeaving = true
        let channel = context.channel
        do {
            try Glue.join(channel, peer, idle: service.timeouts.tunnel, isOneWay: isOneWay, clientHasEnded: isInputClosed)
            try channel.pipeline.syncOperations.removeRequestDecoder()
            channel.pipeline.syncOperations.removeHandler(self, promise: nil)
        } catch {
            peer.close(promise: nil)
            context.close(promise: nil)
        }
    }
}
