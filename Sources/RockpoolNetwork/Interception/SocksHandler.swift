// The SOCKS 5 listener: the handshake, then the connection as its target asks for (RFC 1928; docs/guide/clients.md#socks).
import NIOCore
import RockpoolCore
import RockpoolEngine

/// Answers the handshake of one client, then leaves the pipeline.
final class SocksHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let service: ConnectionService
    private let open: OpenConnection?
    private var talk: SocksTalk
    private var context: ChannelHandlerContext?
    private var timer: Scheduled<Void>?
    /// The place of a tunnel among the exchanges under way.
    private var place: ExchangePlace?
    /// Bytes after the handshake, while the target is dialled.
    private var held: ByteBuffer?
    private var isInputClosed = false
    /// True while a password is compared.
    private var isVerifying = false

    init(service: ConnectionService, open: OpenConnection?) {
        (self.service, self.open) = (service, open)
        talk = SocksTalk(needsPassword: service.engine.proxyPasswords != nil)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        let channel = context.channel
        timer = context.eventLoop.scheduleTask(in: .milliseconds(service.timeouts.head.milliseconds)) { channel.close(promise: nil) }
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
        var bytes = unwrapInboundIn(data)
        guard held == nil else {
            held?.writeBuffer(&bytes)
            return
        }
        if isVerifying { return talk.keep(bytes.readableBytesView) }
        follow(talk.receive(bytes.readableBytesView), context: context)
    }

    private func follow(_ first: SocksTalk.Action, context: ChannelHandlerContext) {
        var action = first
        while true {
            switch action {
            case .more: return
            case .send(let answer):
                write(answer, context: context)
                action = talk.proceed()
            case .verify(let user, let password):
                guard let given = NameAndPassword(name: user, password: password) else {
                    action = talk.verified(false)
                    continue
                }
                return verify(given, context: context)
            case .end(let answer): return end(answer, context: context)
            case .connect(let host, let port, let early): return connect(host: host, port: port, early: early, context: context)
            }
        }
    }

    private func verify(_ given: NameAndPassword, context: ChannelHandlerContext) {
        isVerifying = true
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        service.admits(given, on: context.channel).whenComplete { result in
            let handler = me.value
            guard let context = handler.context else { return }
            handler.isVerifying = false
            let isRight = if case .success(true) = result { true } else { false }
            let channel = context.channel
            handler.follow(handler.talk.verified(isRight), context: context)
            // The read that was held back.
            channel.read()
        }
    }

    /// While the target is dialled or a password compared, further bytes of the client stay in the socket.
    func read(context: ChannelHandlerContext) { if held == nil, !isVerifying { context.read() } }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case let event as ChannelEvent where event == .inputClosed:
            isInputClosed = true
            if held == nil { return context.close(promise: nil) }
        case is DrainEvent: return context.close(promise: nil)
        default: break
        }
        context.fireUserInboundEventTriggered(event)
    }

    private func write(_ bytes: [UInt8], context: ChannelHandlerContext) {
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
    }

    private func end(_ answer: [UInt8], context: ChannelHandlerContext) {
        let channel = context.channel
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: answer))).whenComplete { _ in channel.close(promise: nil) }
    }

    // MARK: the target

    private func connect(host: String, port: Int, early: [UInt8], context: ChannelHandlerContext) {
        let target = KnownTarget(host: host, port: port, service: service)
        timer?.cancel()
        do {
            switch try target.course() {
            case .inspect:
                try context.pipeline.syncOperations.addHandler(FirstBytesHandler(target, open: open), position: .after(self))
                write(SocksTalk.Reply.succeeded.bytes, context: context)
                if !early.isEmpty { context.fireChannelRead(wrapInboundOut(ByteBuffer(bytes: early))) }
                context.pipeline.syncOperations.removeHandler(self, promise: nil)
            case .tunnel:
                place = try open?.place(.tunnel)
                held = ByteBuffer(bytes: early)
                let me = NIOLoopBound(self, eventLoop: context.eventLoop)
                service.dialer.connect(
                    host: host, port: port, isLocalClient: context.channel.isClientLocal, client: open?.account?.client,
                    on: context.eventLoop
                )
                .whenComplete { me.value.dialed($0) }
            }
        } catch {
            end(SocksTalk.Reply(error).bytes, context: context)
        }
    }

    private func dialed(_ result: Result<any Channel, any Error>) {
        guard let context, let held else {
            if case .success(let peer) = result { peer.close(promise: nil) }
            return
        }
        switch result {
        case .failure(let error): end(SocksTalk.Reply(error).bytes, context: context)
        case .success(let peer):
            do {
                write(SocksTalk.Reply.succeeded.bytes, context: context)
                try Glue.join(context.channel, with: peer, at: place, idle: service.timeouts.tunnel, clientHasEnded: isInputClosed)
                self.held = nil
                // The read that was held back.
                context.read()
                if held.readableBytes > 0 { peer.writeAndFlush(held, promise: nil) }
                context.pipeline.syncOperations.removeHandler(self, promise: nil)
                if !peer.isActive { context.close(promise: nil) }
            } catch {
                peer.close(promise: nil)
                context.close(promise: nil)
            }
        }
    }
}

extension SocksTalk.Reply {
    /// The reply for a failed connection.
    fileprivate init(_ error: any Error) {
        if let refusal = error as? Refusal {
            self = refusal == .busy ? .failed : .notAllowed
            return
        }
        switch TransferFailure(connecting: error).kind {
        case .refused: self = .refused
        case .denied: self = .notAllowed
        case .dns, .connectTimeout: self = .hostUnreachable
        default: self = .failed
        }
    }
}
