// One connection to the admin API: its client's time limits, and when it may be closed for another (docs/security-model.md#slow-clients).
import NIOCore
import NIOHTTP1
import RockpoolCore
import RockpoolEngine

/// Watches the parts that pass between the framework's decoder and its other handlers, and forwards them unchanged.
final class AdminConnection: ChannelDuplexHandler, DeadlineTimerOwner {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private let open: OpenConnection
    /// True if a request's body must arrive at a minimum rate. Bodies on the owner's socket have no time limit.
    private let boundsBodies: Bool
    private var progress = AdminProgress()
    private var timer: DeadlineTimer
    private var context: ChannelHandlerContext?
    /// True if a read is pending: while the server itself does not read, the client is not slow.
    private var isAsking = false
    private var isDraining = false
    private var isLeaving = false

    init(open: OpenConnection, timeouts: ClientTimeouts, bodyRate: ByteCount, boundsBodies: Bool) {
        self.open = open
        self.boundsBodies = boundsBodies
        timer = DeadlineTimer(timeouts: timeouts, bodyRate: bodyRate)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if context.channel.isActive { timer.schedule(for: self, on: context.eventLoop) }
    }

    func channelActive(context: ChannelHandlerContext) {
        timer.schedule(for: self, on: context.eventLoop)
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        timer.cancel()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer.cancel()
        self.context = nil
    }

    // MARK: Requests and responses

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if isLeaving { return }
        switch unwrapInboundIn(data) {
        case .head:
            progress.readHead()
            open.noteWork()
            updatePhase(context: context)
        case .body(let bytes):
            progress.readBody()
            if boundsBodies { timer.receive(byteCount: bytes.readableBytes) }
        case .end:
            progress.readEnd()
            updatePhase(context: context)
        }
        context.fireChannelRead(data)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        isAsking = false
        progress.readAll()
        if progress.isIdle { updatePhase(context: context) }
        context.fireChannelReadComplete()
    }

    func read(context: ChannelHandlerContext) {
        isAsking = true
        context.read()
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .end = unwrapOutboundIn(data) else { return context.write(data, promise: promise) }
        progress.wroteEnd()
        updatePhase(context: context)
        let sent = promise ?? context.eventLoop.makePromise(of: Void.self)
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        sent.futureResult.whenComplete { _ in me.value.answered() }
        context.write(data, promise: sent)
    }

    private func answered() {
        progress.sentEnd()
        guard let context else { return }
        if progress.isIdle {
            if isDraining { return context.close(promise: nil) }
            open.noteIdle(since: .now())
        }
        updatePhase(context: context)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        updatePhase(context: context)
        context.fireChannelWritabilityChanged()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is DrainEvent else { return context.fireUserInboundEventTriggered(event) }
        isDraining = true
        if progress.isIdle { context.close(promise: nil) }
    }

    // MARK: Deadlines

    private func updatePhase(context: ChannelHandlerContext) {
        let phase = progress.phase(isWritable: context.channel.isWritable, boundsBodies: boundsBodies)
        timer.enter(isLeaving ? .lingering : phase)
        if context.channel.isActive { timer.ensureScheduled(for: self, on: context.eventLoop) }
    }

    func timerFired() {
        guard let context, let phase = timer.passedPhase(for: self, on: context.eventLoop) else { return }
        switch phase {
        case .head: refuse(context: context)
        case .body where !isAsking:
            timer.forgive()
            timer.schedule(for: self, on: context.eventLoop)
        default: context.close(promise: nil)
        }
    }

    /// Answers 408 to a client that took too long to send a head (RFC 9110 §15.5.9), then closes the connection.
    private func refuse(context: ChannelHandlerContext) {
        isLeaving = true
        updatePhase(context: context)
        let channel = context.channel
        let head = HTTPResponseHead(version: .http1_1, status: .requestTimeout, headers: ["Connection": "close", "Content-Length": "0"])
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in channel.close(promise: nil) }
    }
}
