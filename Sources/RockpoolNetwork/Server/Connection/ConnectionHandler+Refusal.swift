// Problem responses that end a connection (RFC 9112 §9.6).
import NIOCore
import RockpoolCore
import RockpoolEngine

extension ConnectionHandler {
    func refuse(_ refusal: Refusal, isHead: Bool = false, context: ChannelHandlerContext) {
        end(with: service.engine.problem(for: refusal), isHead: isHead, context: context)
    }

    /// Answers with a problem and closes the connection. The answer to HEAD is its head alone (RFC 9110 §9.3.2).
    func end(with reply: Reply, isHead: Bool = false, context: ChannelHandlerContext) {
        guard case .bytes(let body) = reply.body else { return context.close(promise: nil) }
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
}
