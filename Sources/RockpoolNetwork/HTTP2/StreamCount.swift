// How many streams an HTTP/2 connection has open and has had: when it is idle, and when it must end (RFC 9113 §6.8).
import NIOCore
import NIOHTTP2
import RockpoolCore
import RockpoolEngine

/// Watches the streams of one connection. It ends by GOAWAY, which lets those that are open finish.
final class StreamCount: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame

    /// Hears of streams in place of the pipeline, and tells those who say farewell.
    struct Delegate: NIOHTTP2StreamDelegate {
        private let count: NIOLoopBound<StreamCount>
        private let closing: NIOHTTP2ServerConnectionManagementHandler.HTTP2StreamDelegate

        init(_ count: StreamCount, _ closing: NIOHTTP2ServerConnectionManagementHandler, on loop: any EventLoop) {
            self.count = NIOLoopBound(count, eventLoop: loop)
            self.closing = closing.http2StreamDelegate
        }

        func streamCreated(_ id: HTTP2StreamID, channel: any Channel) {
            closing.streamCreated(id, channel: channel)
            count.value.opened()
        }

        func streamClosed(_ id: HTTP2StreamID, channel: any Channel) {
            closing.streamClosed(id, channel: channel)
            count.value.closed()
        }
    }

    private let timeouts: ClientTimeouts
    private let limit: Int
    private let connection: OpenConnection?
    private var open = 0
    private var total = 0
    private var isEnding = false
    private var timer: Scheduled<Void>?
    private var context: ChannelHandlerContext?

    init(service: ConnectionService, open connection: OpenConnection?) {
        timeouts = service.timeouts
        limit = service.limits.requestsPerConnection
        self.connection = connection
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        becomeIdle(context)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
        self.context = nil
    }

    private func opened() {
        open += 1
        total += 1
        timer?.cancel()
        connection?.noteWork()
        if total >= limit, let context { end(context) }
    }

    private func closed() {
        open -= 1
        if open == 0, let context { becomeIdle(context) }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case is DrainEvent: return end(context)
        case let event as ChannelEvent where event == .inputClosed: return context.close(promise: nil)
        default: break
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // One stream's fault is that stream's.
        if error is NIOHTTP2Errors.StreamError { return }
        context.close(promise: nil)
    }

    /// Says that no new stream is taken; those that are open go on.
    private func end(_ context: ChannelHandlerContext) {
        guard !isEnding else { return }
        isEnding = true
        let channel = context.channel
        // Not while a frame is being read.
        context.eventLoop.execute { channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
        if open == 0 { becomeIdle(context) }
    }

    private func becomeIdle(_ context: ChannelHandlerContext) {
        connection?.noteIdle(since: .now())
        timer?.cancel()
        let me = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let wait: TimeAmount = isEnding ? .seconds(1) : .milliseconds(timeouts.idle.milliseconds)
        timer = context.eventLoop.scheduleTask(in: wait) {
            let (count, context) = me.value
            // A client that does not answer our farewell is not waited for.
            if count.isEnding { context.close(promise: nil) } else { count.end(context) }
        }
    }
}
