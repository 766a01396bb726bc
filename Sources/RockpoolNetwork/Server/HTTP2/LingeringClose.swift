// Closes an HTTP/2 connection without cutting off what its client has not received yet (RFC 9113 §6.8, RFC 9112 §9.6).
import NIOCore

/// Closes the write side first, and receives for a moment what the client still sends: closing a socket with unread bytes resets the
/// connection, and the client may lose replies that it has not read. The handler next to the socket.
final class LingeringClose: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    /// The longest time for which the client may go on sending.
    private static let limit = TimeAmount.seconds(1)

    private var isInputClosed = false
    private var closing: (promise: EventLoopPromise<Void>?, limit: Scheduled<Void>)?

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard mode == .all, closing == nil, !isInputClosed, context.channel.isActive else {
            return context.close(mode: mode, promise: promise)
        }
        let me = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        closing = (promise, context.eventLoop.scheduleTask(in: Self.limit) { me.value.0.finish(context: me.value.1) })
        context.close(mode: .output, promise: nil)
        context.read()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if closing == nil { context.fireChannelRead(data) }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if closing == nil { context.fireChannelReadComplete() } else { context.read() }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let event = event as? ChannelEvent, event == .inputClosed {
            isInputClosed = true
            if closing != nil { return finish(context: context) }
        }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        if let (promise, limit) = closing {
            limit.cancel()
            promise?.succeed()
        }
        closing = nil
        context.fireChannelInactive()
    }

    private func finish(context: ChannelHandlerContext) {
        guard let (promise, limit) = closing else { return }
        limit.cancel()
        closing = nil
        context.close(mode: .all, promise: promise)
    }
}
