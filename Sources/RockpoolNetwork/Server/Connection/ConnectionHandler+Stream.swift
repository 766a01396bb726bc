// The end of an exchange on a stream of an HTTP/2 connection (RFC 9113 §8.1).
import NIOCore
import RockpoolCore
import RockpoolEngine

extension ConnectionHandler {
    /// Ends this handler's part in a connection that goes on as HTTP/2.
    func leaveToHTTP2() {
        isLeaving = true
        timer.cancel()
    }

    /// Sends the reply in a new task. The task that created the reply keeps its deepest stack until it ends, 35 KB, which for a stalled
    /// client would exceed all its other memory.
    func send(_ reply: Reply, by writer: ReplyWriter, exchange number: Int) {
        let loop = writer.channel.eventLoop
        let me = NIOLoopBound(self, eventLoop: loop)
        let task = Task(executorPreference: LoopExecutor(loop)) {
            let staysOpen = await writer.finish(reply)
            loop.execute { me.value.finishExchange(number, staysOpen: staysOpen) }
        }
        // The client may have left in the meantime: then the reply's task is cancelled.
        if current?.number == number { current?.task = task } else { task.cancel() }
    }

    /// Ends the stream after its reply; RST_STREAM stops a client that is still sending (RFC 9113 §8.1).
    func endStream(context: ChannelHandlerContext) {
        isLeaving = true
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        // Deferred, because the client's own END_STREAM may be in the data in processing.
        context.eventLoop.execute {
            guard let context = me.value.context, context.channel.isActive else { return }
            context.triggerUserOutboundEvent(StreamGate.StopSending(), promise: nil)
        }
    }
}
