// Problem responses that end a connection (RFC 9112 §9.6).
import NIOCore
import NIOHTTP1
import RockpoolCore
import RockpoolEngine

extension ConnectionHandler {
    func refuse(_ refusal: Refusal, isHead: Bool = false, context: ChannelHandlerContext) {
        end(with: service.engine.problem(for: refusal), isHead: isHead, context: context)
    }

    /// Answers with a problem and closes the connection. The answer to HEAD is its head alone (RFC 9110 §9.3.2).
    func end(with reply: Reply, isHead: Bool = false, context: ChannelHandlerContext) {
        guard case .bytes(let body) = reply.body else { return context.close(promise: nil) }
        log(reply, bytes: isHead ? 0 : body.readableBytes)
        let whole = WholeReply(head: reply.head, framing: .length(Int64(body.readableBytes)), body: isHead ? nil : body)
        if wire == .stream {
            isLeaving = true
            let me = NIOLoopBound(self, eventLoop: context.eventLoop)
            whole.writeParts(context: context).whenComplete { _ in
                me.value.context.map { me.value.endStream(context: $0) }
            }
        } else {
            whole.writeBytes(context: context, connection: "close")
            closeAfterReply(context: context)
        }
    }

    /// Writes the line of the access log for a request that becomes no exchange.
    private func log(_ reply: Reply, bytes: Int) {
        let line: RequestLine? =
            switch unlogged {
            case .unread: RequestLine(unreadableAt: service.engine.now())
            case .request(let line): line
            case .nothing: nil
            }
        if let line { service.engine.log(line, answered: reply, end: ReplyEnd(bytes: Int64(bytes))) }
        unlogged = .nothing
    }

    /// Writes the line of the access log for a request that opens a tunnel.
    func logTunnel(_ status: Int = 200) {
        if case .request(let line) = unlogged { service.engine.log(line, opened: status) }
        unlogged = .nothing
    }
}

extension ConnectionService {
    /// The line of a request that was read, if an access log is to have it.
    func unlogged(_ head: HTTPRequestHead) -> Unlogged {
        guard engine.logsAccess else { return .nothing }
        let url = resolution.name(of: head.uri, host: head.headers.first(name: "host"))
        return .request(RequestLine(method: head.method.rawValue, url: url, at: engine.now()))
    }
}

/// The end of an exchange on a stream of an HTTP/2 connection (RFC 9113 §8.1).
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
