// One of the two streams of a call (RFC 9113 §5).
import NIOCore
import NIOHTTP2

/// Passes the frames of its stream on to the call, and reads no more of them than the other stream takes.
final class CallStream: ChannelDuplexHandler {
    typealias InboundIn = HTTP2Frame.FramePayload
    typealias OutboundIn = HTTP2Frame.FramePayload
    typealias OutboundOut = HTTP2Frame.FramePayload
    /// The reason of a reset (RFC 9113 §7).
    typealias Code = HTTP2ErrorCode

    /// Nil once both streams have ended.
    var call: RelayedCall?
    private var context: ChannelHandlerContext?
    private var isReadPending = false
    /// Of a reset by the other end.
    private var code: Code?
    private(set) var isClosed = false

    /// Its number; nil before its first frame.
    var number: HTTP2StreamID? { try? context?.channel.syncOptions?.getOption(HTTP2StreamChannelOptions.streamID) }

    /// True if it holds nothing unsent.
    var isWritable: Bool { context?.channel.isWritable ?? false }

    func write(_ payload: HTTP2Frame.FramePayload, promise: EventLoopPromise<Void>? = nil) {
        guard let context, !isClosed else { return promise?.fail(ChannelError.ioOnClosedChannel) ?? () }
        context.write(wrapOutboundOut(payload), promise: promise)
    }

    func flush() { context?.flush() }

    /// Ends the stream where it is: what is unsent is dropped.
    func reset(_ code: Code) {
        guard let context, !isClosed else { return }
        context.writeAndFlush(wrapOutboundOut(.rstStream(code)), promise: nil)
    }

    /// Closes a stream on which nothing was sent.
    func abandon() { context?.close(promise: nil) }

    /// Reads on after a pause.
    func resume() {
        guard isReadPending else { return }
        isReadPending = false
        context?.read()
    }

    // MARK: channel

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        end()
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { call?.receive(unwrapInboundIn(data), from: self) }

    func channelReadComplete(context: ChannelHandlerContext) { call?.flush(after: self) }

    func read(context: ChannelHandlerContext) {
        if call?.mayRead(from: self) == false { isReadPending = true } else { context.read() }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable { call?.resume(before: self) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let error = error as? NIOHTTP2Errors.StreamClosed { code = error.errorCode }
    }

    func channelInactive(context: ChannelHandlerContext) { end() }

    private func end() {
        guard !isClosed else { return }
        isClosed = true
        call?.ended(self, code: code)
    }
}
