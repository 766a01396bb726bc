// The first bytes of a connection whose target is known: requests, TLS to decrypt, or bytes to pass on.
import NIOCore
import NIOTLS
import RockpoolCore
import RockpoolEngine

/// Inspects the first byte, for an address also the name in the TLS handshake, then leaves the pipeline.
final class FirstBytesHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer

    private let target: KnownTarget
    private let open: OpenConnection?
    private var context: ChannelHandlerContext?
    private var timer: Scheduled<Void>?
    /// The place of a tunnel among the exchanges under way.
    private var place: ExchangePlace?
    /// Bytes that wait for the connection to the target.
    private var held: ByteBuffer?
    private var isPassing = false
    private var isInputClosed = false

    init(_ target: KnownTarget, open: OpenConnection?) { (self.target, self.open) = (target, open) }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        let channel = context.channel
        timer = context.eventLoop.scheduleTask(in: .milliseconds(target.service.timeouts.head.milliseconds)) { channel.close(promise: nil) }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
        self.context = nil
    }

    func channelInactive(context: ChannelHandlerContext) {
        timer?.cancel()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if isPassing { return context.fireChannelRead(data) }
        var bytes = unwrapInboundIn(data)
        guard held == nil else {
            held?.writeBuffer(&bytes)
            return
        }
        guard let first = bytes.readableBytesView.first else { return }
        do {
            switch first {
            case FirstByteHandler.handshake where target.isDecrypted:
                try HandshakeHandler.begin(
                    on: context.channel, origin: target.https, service: target.service.inside(target.https),
                    isLocalClient: context.channel.isClientLocal, open: open)
                leave(passing: bytes, context: context)
            case FirstByteHandler.handshake where target.isAddress: try readName(bytes, context: context)
            case FirstByteHandler.handshake where target.mayTunnel: pass(bytes, context: context)
            case FirstByteHandler.handshake: context.close(promise: nil)
            default:
                guard target.speaksHTTP, !target.mayBeTunnel || Self.beginsRequest(bytes) else { return pass(bytes, context: context) }
                try target.requests.installHTTP1(on: context.channel, open: open, wire: .plain)
                leave(passing: bytes, context: context)
            }
        } catch {
            context.close(promise: nil)
        }
    }

    /// True for a method, a space and the beginning of a path (RFC 9112 §3).
    private static func beginsRequest(_ bytes: ByteBuffer) -> Bool {
        let view = bytes.readableBytesView
        let method = view.prefix { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0 }
        return !method.isEmpty && view.dropFirst(method.count).starts(with: " /".utf8)
    }

    /// While the target is dialled, further bytes of the client stay in the socket.
    func read(context: ChannelHandlerContext) { if held == nil { context.read() } }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case let event as ChannelEvent where event == .inputClosed:
            isInputClosed = true
            if held == nil, !isPassing { return context.close(promise: nil) }
        case is DrainEvent where !isPassing: return context.close(promise: nil)
        default: break
        }
        context.fireUserInboundEventTriggered(event)
    }

    private func leave(passing bytes: ByteBuffer, context: ChannelHandlerContext) {
        context.fireChannelRead(wrapInboundOut(bytes))
        context.pipeline.syncOperations.removeHandler(self, promise: nil)
    }

    // MARK: tunnels

    private func pass(_ bytes: ByteBuffer, context: ChannelHandlerContext) {
        held = bytes
        timer?.cancel()
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        dial(target.host, context: context).whenComplete { result in
            let handler = me.value
            guard let context = handler.context, let held = handler.held else {
                if case .success(let peer) = result { peer.close(promise: nil) }
                return
            }
            guard case .success(let peer) = result, handler.join(peer, context: context) else { return context.close(promise: nil) }
            handler.held = nil
            // The read that was held back.
            context.read()
            peer.writeAndFlush(held, promise: nil)
            context.pipeline.syncOperations.removeHandler(handler, promise: nil)
        }
    }

    private func dial(_ host: String, context: ChannelHandlerContext) -> EventLoopFuture<any Channel> {
        do throws(Refusal) { place = try open?.place(.tunnel) } catch { return context.eventLoop.makeFailedFuture(error) }
        return target.service.dialer.connect(
            host: host, port: target.port, isLocalClient: context.channel.isClientLocal, client: open?.account?.client,
            on: context.eventLoop)
    }

    private func join(_ peer: any Channel, context: ChannelHandlerContext) -> Bool {
        do {
            try Glue.join(context.channel, with: peer, at: place, idle: target.service.timeouts.tunnel, clientHasEnded: isInputClosed)
            return peer.isActive
        } catch {
            peer.close(promise: nil)
            return false
        }
    }

    // MARK: the name in a handshake

    /// A client that has resolved its target itself still names it in the handshake.
    private func readName(_ bytes: ByteBuffer, context: ChannelHandlerContext) throws {
        isPassing = true
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        let loop = context.eventLoop
        let hello = SNIHandler { result in
            guard let context = me.value.context else { return loop.makeFailedFuture(ChannelError.ioOnClosedChannel) }
            return me.value.follow(result, context: context).flatMapErrorThrowing { error in
                me.value.context?.close(promise: nil)
                throw error
            }
        }
        try context.pipeline.syncOperations.addHandler(ByteToMessageHandler(hello), position: .after(self))
        context.fireChannelRead(wrapInboundOut(bytes))
    }

    /// Decrypts a connection to a name that is to be decrypted; otherwise connects it to a declared name, or to the address.
    private func follow(_ hello: SNIResult, context: ChannelHandlerContext) -> EventLoopFuture<Void> {
        timer?.cancel()
        let name = hello.host
        if let name, target.isDecrypted(name) {
            let origin = OriginAddress(scheme: .https, host: name, port: target.port)
            let service = target.service.inside(origin)
            let started = HandshakeHandler.begin(after: hello, on: context.channel, origin: origin, service: service, open: open)
            context.pipeline.syncOperations.removeHandler(self, promise: nil)
            return started
        }
        let origin = name.map { OriginAddress(scheme: .https, host: $0, port: target.port) }
        let isDeclared = origin.map { target.service.engine.upstream(for: $0) != nil } ?? false
        guard isDeclared || target.mayTunnel else { return context.eventLoop.makeFailedFuture(ChannelError.connectPending) }
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        return dial(isDeclared ? name ?? target.host : target.host, context: context).flatMapThrowing { peer in
            let handler = me.value
            guard let context = handler.context, handler.join(peer, context: context) else {
                peer.close(promise: nil)
                throw ChannelError.ioOnClosedChannel
            }
            context.pipeline.syncOperations.removeHandler(handler, promise: nil)
        }
    }
}
