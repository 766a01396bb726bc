// HTTP/2 without TLS on a gateway or on the proxy, for clients that know it beforehand (RFC 9113 §3.3).
import NIOCore
import RockpoolCore
import RockpoolEngine

/// Inspects the first bytes of a connection. The connection preface of HTTP/2 with the frame that must follow it replaces the handlers of
/// HTTP/1; anything else is passed on, and a preface alone is refused as a request of HTTP/1.
final class PriorKnowledgeHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// The preface, which no request of HTTP/1 begins with (§3.4).
    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
    /// The place of the type of the frame behind it, and that type: SETTINGS (§4.1, §6.5).
    private static let (typePlace, settings) = (preface.count + 3, UInt8(4))
    /// How long the client may take between the preface and that frame; programs send both at once.
    private static let patience = TimeAmount.milliseconds(500)

    private let service: ConnectionService
    private let open: OpenConnection?
    private var held = ByteBuffer()
    private var isSwitching = false
    private var timer: Scheduled<Void>?

    init(service: ConnectionService, open: OpenConnection?) { (self.service, self.open) = (service, open) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        held.writeBuffer(&bytes)
        guard !isSwitching else { return }
        let known = min(held.readableBytes, Self.preface.count)
        guard held.readableBytesView.prefix(known).elementsEqual(Self.preface.prefix(known)) else { return passOn(context: context) }
        guard held.readableBytes > Self.typePlace else { return wait(context: context) }
        let type = held.getInteger(at: held.readerIndex + Self.typePlace, as: UInt8.self)
        if type == Self.settings { becomeHTTP2(context: context) } else { passOn(context: context) }
    }

    private func wait(context: ChannelHandlerContext) {
        if let connection = try? context.pipeline.syncOperations.handler(type: ConnectionHandler.self), let its = connection.context {
            // The client has begun, and has the time for a head.
            connection.enter(.head, context: its)
        }
        if timer == nil, held.readableBytes >= Self.preface.count {
            let me = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            timer = context.eventLoop.scheduleTask(in: Self.patience) { me.value.0.passOn(context: me.value.1) }
        }
        context.read()
    }

    func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }

    private func passOn(context: ChannelHandlerContext) {
        context.fireChannelRead(wrapInboundOut(held))
        context.pipeline.syncOperations.removeHandler(self, promise: nil)
    }

    private func becomeHTTP2(context: ChannelHandlerContext) {
        isSwitching = true
        timer?.cancel()
        do {
            let pipeline = context.pipeline.syncOperations
            try pipeline.handler(type: ConnectionHandler.self).leaveToHTTP2()
            try HTTP2Connection.install(on: context.channel, service: service.ofStreams, open: open, scheme: .http)
            try pipeline.removeHandler(context: pipeline.context(handlerType: FastPathHandler.self), promise: nil)
            try pipeline.removeRequestDecoder()
            try pipeline.removeHandler(context: pipeline.context(handlerType: ConnectionHandler.self), promise: nil)
        } catch {
            return context.close(promise: nil)
        }
        let me = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        // Deferred until the decoder has left, which takes a turn of the loop.
        context.eventLoop.execute {
            let (handler, context) = me.value
            handler.passOn(context: context)
            context.channel.read()
        }
    }
}
