// The reply of a stream: a reply without a body ends with its HEADERS frame, and DATA is counted until the client has received it.
import NIOCore
import NIOHTTP2

extension StreamGate {
    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let payload = unwrapOutboundIn(data)
        if let reply = unsent, case .data(let end) = payload, end.endStream, end.data.readableBytes == 0 {
            unsent = nil
            var (head, both) = reply
            head.endStream = true
            both.setOrCascade(to: promise)
            return context.write(wrapOutboundOut(.headers(head)), promise: both)
        }
        sendHead(context: context)
        switch payload {
        case .headers(let head) where !head.endStream: unsent = (head, promise)
        case .data(let body) where body.data.readableBytes > 0: send(body, promise: promise, context: context)
        default: context.write(data, promise: promise)
        }
    }

    func flush(context: ChannelHandlerContext) {
        sendHead(context: context)
        context.flush()
    }

    private func sendHead(context: ChannelHandlerContext) {
        guard let (head, promise) = unsent else { return }
        unsent = nil
        context.write(wrapOutboundOut(.headers(head)), promise: promise)
    }

    /// Writes a piece of the body frame by frame, so that progress is known per frame.
    private func send(_ body: HTTP2Frame.FramePayload.Data, promise: EventLoopPromise<Void>?, context: ChannelHandlerContext) {
        let count = body.data.readableBytes
        backlog.add(count, to: waiting)
        waiting += count
        guard case .byteBuffer(var rest) = body.data else {
            return context.write(wrapOutboundOut(.data(body)), promise: counting(count, promise: promise, context: context))
        }
        while rest.readableBytes > UnsentBytes.frame, let piece = rest.readSlice(length: UnsentBytes.frame) {
            let frame = HTTP2Frame.FramePayload.Data(data: .byteBuffer(piece))
            context.write(wrapOutboundOut(.data(frame)), promise: counting(UnsentBytes.frame, promise: nil, context: context))
        }
        let last = HTTP2Frame.FramePayload.Data(data: .byteBuffer(rest), endStream: body.endStream)
        context.write(wrapOutboundOut(.data(last)), promise: counting(rest.readableBytes, promise: promise, context: context))
    }

    /// Returns a promise, the writer's if there is one, that counts `count` bytes as received when it completes.
    private func counting(
        _ count: Int, promise: EventLoopPromise<Void>?, context: ChannelHandlerContext
    ) -> EventLoopPromise<Void> {
        let written = promise ?? context.eventLoop.makePromise(of: Void.self)
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        written.futureResult.whenComplete { result in me.value.settle(count, result: result) }
        return written
    }

    /// `count` bytes were written to the client's socket, or discarded.
    private func settle(_ count: Int, result: Result<Void, any Error>) {
        waiting -= count
        switch result {
        case .success: backlog.take(count, leaving: waiting)
        case .failure: backlog.drop(count, leaving: waiting)
        }
    }

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        guard event is StopSending else { return context.triggerUserOutboundEvent(event, promise: promise) }
        context.writeAndFlush(wrapOutboundOut(.rstStream(.noError)), promise: promise)
    }
}
