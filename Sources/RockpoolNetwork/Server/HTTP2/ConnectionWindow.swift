// The flow-control window of a connection for request data (RFC 9113 §6.9).
import NIOCore
import NIOHTTP2

/// Keeps the connection's window larger than a stream's, so that streams do not wait for it. Takes the place of the multiplexer, which would
/// give the connection the window of a stream.
final class ConnectionWindow: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame
    typealias OutboundOut = HTTP2Frame

    private let target: Int

    /// - Parameter target: bytes.
    init(target: Int) { self.target = target }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard let event = event as? NIOHTTP2WindowUpdatedEvent, event.streamID == .rootStream else {
            return context.fireUserInboundEventTriggered(event)
        }
        guard let size = event.inboundWindowSize, size <= target / 2 else { return }
        let frame = HTTP2Frame(streamID: .rootStream, payload: .windowUpdate(windowSizeIncrement: target - size))
        context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    }
}
