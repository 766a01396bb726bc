// Problem responses that end a connection (RFC 9112 §9.6).
import NIOCore
import RockpoolCore
import RockpoolEngine

extension ConnectionHandler {
    func refuse(_ refusal: Refusal, isHead: Bool = false, _ context: ChannelHandlerContext) {
        end(with: service.engine.problem(for: refusal), isHead: isHead, context)
    }

    /// Answers with a problem and closes the connection. The answer to HEAD is its head alone (RFC 9110 §9.3.2).
    func end(with reply: Reply, isHead: Bool = false, _ context: ChannelHandlerContext) {
        guard case .bytes(let body) = reply.body else { return context.close(promise: nil) }
        let framing = ReplyFraming.length(Int64(body.readableBytes))
        if wire == .stream { return refuseOnStream(reply.head, framing, isHead ? nil : body, context) }
        var buffer = context.channel.allocator.buffer(capacity: 512)
        HeadSerializer.write(reply.head, framing: framing, connection: "close", into: &buffer)
        if !isHead { buffer.writeImmutableBuffer(body) }
        context.writeAndFlush(wrapOutboundOut(.byteBuffer(buffer)), promise: nil)
        closeAfterReply(context)
    }
}
