// How many streams an HTTP/2 connection has open and has had: when it is idle, stuck, and when it must end (RFC 9113 §6.8).
import NIOCore
import NIOHTTP2
import RockpoolCore
import RockpoolEngine

/// Watches the streams of one connection. It ends by GOAWAY, which lets those that are open finish; a client that takes nothing of any
/// of them is not waited for.
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
    private let backlog: StreamBacklog
    private var open = 0
    private var total = 0
    private var isEnding = false
    private var timer: Scheduled<Void>?
    /// Set while there are streams, and until its next look when there are none.
    private var watch: Scheduled<Void>?
    private var context: ChannelHandlerContext?

    init(service: ConnectionService, open connection: OpenConnection?, backlog: StreamBacklog) {
        timeouts = service.timeouts
        limit = service.limits.requestsPerConnection
        self.connection = connection
        self.backlog = backlog
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        becomeIdle(context)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
        watch?.cancel()
        self.context = nil
        // Nobody is told of those that end with their connection.
        FreedMemory.process.ended(open, on: context.eventLoop)
    }

    private func opened() {
        open += 1
        total += 1
        backlog.open()
        FreedMemory.process.opened()
        timer?.cancel()
        connection?.noteWork()
        guard let context else { return }
        if watch == nil { look(after: context) }
        if total >= limit { end(context) }
    }

    private func closed() {
        open -= 1
        backlog.close()
        if let context { FreedMemory.process.ended(1, on: context.eventLoop) }
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

    /// Looks four times within the client's patience whether it still takes anything: one timer, whatever its streams do.
    private func look(after context: ChannelHandlerContext) {
        let me = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        watch = context.eventLoop.scheduleTask(in: .nanoseconds(max(1, backlog.patience.nanoseconds / 4))) {
            let (count, context) = me.value
            count.watch = nil
            if count.backlog.isStuck(at: .now()) { count.giveUp(context) } else if count.open > 0 { count.look(after: context) }
        }
    }

    /// Says why, and closes without waiting for the streams: their unsent bytes and what they hold are let go.
    private func giveUp(_ context: ChannelHandlerContext) {
        let farewell = HTTP2Frame.FramePayload.goAway(lastStreamID: .maxID, errorCode: .enhanceYourCalm, opaqueData: nil)
        context.writeAndFlush(NIOAny(HTTP2Frame(streamID: .rootStream, payload: farewell)), promise: nil)
        context.close(promise: nil)
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
