// How an exchange ends that is a stream of an HTTP/2 connection (RFC 9113 §8.1).
import NIOCore
import RockpoolCore
import RockpoolEngine

extension ConnectionHandler {
    /// Sends the reply by a task of its own. The one that has made it keeps the deepest stack it ever had until it ends, 35 KB: with that a
    /// client that takes nothing would cost more than with all else.
    func send(_ reply: Reply, by writer: ReplyWriter, of number: Int) {
        let loop = writer.channel.eventLoop
        let me = NIOLoopBound(self, eventLoop: loop)
        let task = Task(executorPreference: LoopExecutor(loop)) {
            let staysOpen = await writer.finish(reply)
            loop.execute { me.value.finishExchange(staysOpen, of: number) }
        }
        // The client may have left meanwhile: the reply ends as one that nobody takes.
        if current?.number == number { current?.task = task } else { task.cancel() }
    }

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
