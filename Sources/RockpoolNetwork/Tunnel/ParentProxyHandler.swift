// The handshake with a parent proxy at the beginning of a tunnel; afterwards the handler leaves the pipeline.
import NIOCore
import RockpoolCore

/// Completes its promise when the tunnel is established.
final class ParentProxyHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var talk: ParentProxyTalk
    private var promise: EventLoopPromise<Void>?
    private let limit: TimeAmount
    private var timer: Scheduled<Void>?

    /// - Parameter limit: the time limit of the whole handshake.
    init(_ talk: ParentProxyTalk, within limit: TimeAmount, _ promise: EventLoopPromise<Void>) {
        self.talk = talk
        self.limit = limit
        self.promise = promise
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let me = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        timer = context.eventLoop.scheduleTask(in: limit) {
            let (handler, context) = me.value
            handler.fail("the parent proxy did not answer in time", as: .connectTimeout, context: context)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
        finish(.failure(ChannelError.ioOnClosedChannel))
    }

    func channelActive(context: ChannelHandlerContext) {
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: talk.begin())), promise: nil)
        context.fireChannelActive()
        context.read()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch talk.receive(unwrapInboundIn(data).readableBytesView) {
        case .more: break
        case .send(let bytes): context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
        case .failed(let detail): fail(detail, context: context)
        case .established(let early):
            timer?.cancel()
            let promise = promise
            self.promise = nil
            // The promise installs the next handlers first, so that they receive the early bytes.
            promise?.succeed()
            if !early.isEmpty { context.fireChannelRead(wrapInboundOut(ByteBuffer(bytes: early))) }
            context.pipeline.syncOperations.removeHandler(self, promise: nil)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if promise != nil { context.read() }
        context.fireChannelReadComplete()
    }

    func channelInactive(context: ChannelHandlerContext) {
        fail("the parent proxy closed the connection", context: context)
        context.fireChannelInactive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if promise != nil, let event = event as? ChannelEvent, event == .inputClosed {
            return fail("the parent proxy closed the connection", context: context)
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        let failure = TransferFailure(connecting: error)
        fail("no connection to the parent proxy: \(failure.detail)", as: failure.kind, context: context)
    }

    private func fail(_ detail: String, as kind: TransferFailure.Kind = .reset, context: ChannelHandlerContext) {
        guard promise != nil else { return }
        finish(.failure(TransferFailure(kind: kind, sent: .no, detail: detail)))
        context.close(promise: nil)
    }

    private func finish(_ result: Result<Void, any Error>) {
        promise?.completeWith(result)
        promise = nil
    }
}
