// HTTP/2 without TLS on a gateway, for clients that know it beforehand (RFC 9113 §3.3).
import NIOCore
import RockpoolCore
import RockpoolEngine

/// Inspects the first bytes of a connection. The connection preface of HTTP/2 replaces the handlers of HTTP/1; anything else is passed on.
final class PriorKnowledgeHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// The beginning of the preface that no request of HTTP/1 has (§3.4).
    private static let preface = Array("PRI * HTTP/2.0\r\n".utf8)

    private let service: ConnectionService
    private let open: OpenConnection?
    private var held = ByteBuffer()
    private var isSwitching = false

    init(service: ConnectionService, open: OpenConnection?) { (self.service, self.open) = (service, open) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        held.writeBuffer(&bytes)
        guard !isSwitching else { return }
        let known = min(held.readableBytes, Self.preface.count)
        guard held.readableBytesView.prefix(known).elementsEqual(Self.preface.prefix(known)) else { return passOn(context: context) }
        if known == Self.preface.count { becomeHTTP2(context: context) } else { context.read() }
    }

    private func passOn(context: ChannelHandlerContext) {
        context.fireChannelRead(wrapInboundOut(held))
        context.pipeline.syncOperations.removeHandler(self, promise: nil)
    }

    private func becomeHTTP2(context: ChannelHandlerContext) {
        isSwitching = true
        do {
            let pipeline = context.pipeline.syncOperations
            try pipeline.handler(type: ConnectionHandler.self).leaveToHTTP2()
            try HTTP2Connection.install(on: context.channel, service: service, open: open, scheme: .http)
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
