// Short replies that are written at once on the event loop: problems and interim responses.
import NIOCore
import NIOHTTP1
import RockpoolCore
import RockpoolEngine

/// A reply whose bytes are all present. On the event loop only.
struct WholeReply {
    let head: ResponseHead
    let framing: ReplyFraming
    /// Nil for a reply without a body, and for the answer to HEAD.
    var body: ByteBuffer?

    /// Writes the reply in the form of HTTP/1; `connection` is the value of `Connection`.
    func writeBytes(context: ChannelHandlerContext, connection: String?) {
        var buffer = context.channel.allocator.buffer(capacity: 512)
        HeadSerializer.write(head, framing: framing, connection: connection, into: &buffer)
        if let body { buffer.writeImmutableBuffer(body) }
        context.writeAndFlush(NIOAny(IOData.byteBuffer(buffer)), promise: nil)
    }

    /// Writes the reply as the parts of an HTTP/2 stream, and ends them. Returns when they are written.
    func writeParts(context: ChannelHandlerContext) -> EventLoopFuture<Void> {
        context.write(NIOAny(ReplyWriter.headPart(head, framing: framing)), promise: nil)
        if let body { context.write(NIOAny(HTTPServerResponsePart.body(.byteBuffer(body))), promise: nil) }
        return context.writeAndFlush(NIOAny(HTTPServerResponsePart.end(nil)))
    }

    /// Writes the head of an interim response (RFC 9110 §15.2); the final reply follows.
    func writeInterim(context: ChannelHandlerContext, wire: ReplyWire) {
        guard wire == .stream else { return writeBytes(context: context, connection: nil) }
        context.writeAndFlush(NIOAny(ReplyWriter.headPart(head, framing: framing)), promise: nil)
    }
}
