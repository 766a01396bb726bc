// How an exchange ends that is a stream of an HTTP/2 connection (RFC 9113 §8.1).
import NIOCore
import RockpoolCore

extension ConnectionHandler {
    /// Answers a request that is not let through; the stream ends once the answer is written.
    func refuseOnStream(_ head: ResponseHead, _ framing: ReplyFraming, _ body: ByteBuffer?, _ context: ChannelHandlerContext) {
        isLeaving = true
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        ReplyWriter.writeParts(head, framing, body, context).whenComplete { _ in
            me.value.context.map { me.value.endStream($0) }
        }
    }

    /// A stream ends with its reply; a client that is still sending is told to stop (RFC 9113 §8.1).
    func endStream(_ context: ChannelHandlerContext) {
        isLeaving = true
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        // Its own end of stream may be in what is being read.
        context.eventLoop.execute {
            guard let context = me.value.context, context.channel.isActive else { return }
            context.triggerUserOutboundEvent(StreamGate.StopSending(), promise: nil)
        }
    }
}
