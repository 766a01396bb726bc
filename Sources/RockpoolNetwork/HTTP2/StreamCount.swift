// The streams of an HTTP/2 connection: their number, which decides when it is idle, stuck, or must end, and the flow control of request
// data (RFC 9113 §5.2, §6.8, §6.9).
import NIOCore
import NIOHTTP2
import RockpoolCore
import RockpoolEngine

/// Watches the streams of one connection (RFC 9113 §6.8). The connection ends by GOAWAY, which lets open streams finish; if the client
/// receives nothing on any stream, it is closed without waiting.
final class StreamCount: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame

    private let timeouts: ClientTimeouts
    private let limit: Int
    private let connection: OpenConnection?
    private let backlog: StreamBacklog
    private var streams: Set<HTTP2StreamID> = []
    /// The places of the streams among the exchanges under way, and of their connection among the busy ones.
    private var places: [HTTP2StreamID: ExchangePlace] = [:]
    private var place: ExchangePlace?
    private var open: Int { streams.count }
    private var total = 0
    private var isEnding = false
    /// True if the connection is closed without waiting for what its client has not taken.
    private(set) var hasGivenUp = false
    /// When a request was last answered without a channel of its own.
    private var answeredAt = NIODeadline.distantPast
    private var timer: Scheduled<Void>?
    /// The timer of the next check; set while there are streams, and until that check when there are none.
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
        becomeIdle(context: context)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
        watch?.cancel()
        self.context = nil
        (places, place) = ([:], nil)
        // Streams that end with their connection report no `closed`.
        FreedMemory.process.ended(open, on: context.eventLoop)
    }

    /// True if a request may be answered without a channel of its own.
    func mayAnswer(on channel: any Channel) -> Bool { !isEnding && total + 1 < limit && channel.isWritable }

    /// Takes the place of a stream among the exchanges under way.
    /// - Returns: false if it is a new one, and its client has as much under way as it may: then it is refused.
    func admits(_ stream: HTTP2StreamID) -> Bool {
        guard let connection, let account = connection.account, !streams.contains(stream), total + 1 < limit else { return true }
        if place == nil { place = account.begin(.streams, on: connection) }
        guard place != nil, let own = account.begin(.stream, on: connection) else {
            total += 1
            leave()
            return false
        }
        places[stream] = own
        return true
    }

    /// The connection is not busy while no stream has a place.
    private func leave() { if places.isEmpty { place = nil } }

    /// Counts a request that was answered without a channel of its own.
    func answeredOne() { total += 1 }

    /// Returns the promise for the end of a reply without a channel of its own: a client that receives it is not stuck. Nil while no stream
    /// waits.
    func receipt(on loop: any EventLoop) -> EventLoopPromise<Void>? {
        guard open > 0 else { return nil }
        let promise = loop.makePromise(of: Void.self)
        promise.futureResult.whenSuccess { [backlog] in backlog.received() }
        return promise
    }

    /// Notes that requests were answered without channels of their own: the connection is not idle.
    func answeredAtOnce() {
        answeredAt = .now()
        if open == 0 { connection?.noteIdle(since: answeredAt) }
    }

    private func opened(_ stream: HTTP2StreamID) {
        guard streams.insert(stream).inserted else { return }
        total += 1
        backlog.open()
        FreedMemory.process.opened()
        timer?.cancel()
        connection?.noteWork()
        guard let context else { return }
        if watch == nil { look(after: context) }
        if total >= limit { end(context: context) }
    }

    private func closed() {
        backlog.close()
        if let context { FreedMemory.process.ended(1, on: context.eventLoop) }
        if open == 0, let context { becomeIdle(context: context) }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case let event as NIOHTTP2StreamCreatedEvent: opened(event.streamID)
        case let event as StreamClosedEvent:
            if places.removeValue(forKey: event.streamID) != nil { leave() }
            // A stream that was refused with its first frame is unknown to all handlers.
            guard streams.remove(event.streamID) != nil else { return }
            closed()
        case is DrainEvent: return end(context: context)
        case let event as ChannelEvent where event == .inputClosed: return context.close(promise: nil)
        default: break
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // An error of one stream does not affect the others: the stream has been reset (RFC 9113 §8.1.1).
        if error is NIOHTTP2Errors.StreamError || error is NIOHTTP2Errors.ContentLengthViolated { return context.fireErrorCaught(error) }
        context.close(promise: nil)
    }

    /// Sends GOAWAY, so that no new stream is accepted; open streams continue.
    private func end(context: ChannelHandlerContext) {
        guard !isEnding else { return }
        isEnding = true
        let channel = context.channel
        // Deferred, because a frame may be in processing.
        context.eventLoop.execute { channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
        if open == 0 { becomeIdle(context: context) }
    }

    /// Checks four times per patience interval whether the client still receives data: one timer for all streams.
    private func look(after context: ChannelHandlerContext) {
        let me = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        watch = context.eventLoop.scheduleTask(in: .nanoseconds(max(1, backlog.patience.nanoseconds / 4))) {
            let (count, context) = me.value
            count.watch = nil
            if count.backlog.isStuck(at: .now()) { count.giveUp(context: context) } else if count.open > 0 { count.look(after: context) }
        }
    }

    /// Sends GOAWAY with ENHANCE_YOUR_CALM and closes without waiting for the streams; their unsent bytes and resources are released.
    private func giveUp(context: ChannelHandlerContext) {
        hasGivenUp = true
        let farewell = HTTP2Frame.FramePayload.goAway(lastStreamID: .maxID, errorCode: .enhanceYourCalm, opaqueData: nil)
        context.writeAndFlush(NIOAny(HTTP2Frame(streamID: .rootStream, payload: farewell)), promise: nil)
        context.close(promise: nil)
    }

    private func becomeIdle(context: ChannelHandlerContext) {
        connection?.noteIdle(since: .now())
        timer?.cancel()
        let me = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let wait: TimeAmount = isEnding ? .seconds(1) : .milliseconds(timeouts.idle.milliseconds)
        timer = context.eventLoop.scheduleTask(in: wait) {
            let (count, context) = me.value
            if !count.isEnding, count.answeredAt + wait > .now() { return count.becomeIdle(context: context) }
            // Close without waiting if the client does not respond to GOAWAY.
            if count.isEnding { context.close(promise: nil) } else { count.end(context: context) }
        }
    }
}

/// Keeps the connection's window larger than a stream's, so that streams do not wait for it, and stops reading the connection while its
/// streams hold much that is not read and its client has more in memory than its share (RFC 9113 §5.2, §6.9). Takes the place of the
/// multiplexer, which would give the connection the window of a stream.
final class ConnectionWindow: ChannelDuplexHandler {
    typealias InboundIn = HTTP2Frame
    typealias InboundOut = HTTP2Frame
    typealias OutboundIn = HTTP2Frame
    typealias OutboundOut = HTTP2Frame

    /// Bytes that the streams of a connection may always hold unread.
    static let unreadLimit = Int.kib(64)
    /// The time after which it is checked again whether the client has room.
    private static let pause = TimeAmount.milliseconds(100)

    private let target: Int
    private let memory: () -> SharedBudget.Share?
    /// Bytes of each stream that wait to be read.
    private var unread: [HTTP2StreamID: Int] = [:]
    private var total = 0
    /// The share in which those bytes are counted.
    private var counted: SharedBudget.Share?
    private var isReadPending = false
    private var context: ChannelHandlerContext?

    /// - Parameters:
    ///   - target: bytes.
    ///   - memory: the client's share of the memory for bodies.
    init(target: Int, memory: @escaping () -> SharedBudget.Share? = { nil }) { (self.target, self.memory) = (target, memory) }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        change(by: -total)
        unread = [:]
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        if case .data(let body) = frame.payload, body.data.readableBytes > 0 {
            unread[frame.streamID, default: 0] += body.data.readableBytes
            change(by: body.data.readableBytes)
        }
        context.fireChannelRead(data)
    }

    /// Notes that bytes of a stream were passed on to where they are counted again.
    func delivered(_ count: Int, on stream: HTTP2StreamID) {
        guard let left = unread[stream] else { return }
        let count = min(count, left)
        unread[stream] = left > count ? left - count : nil
        change(by: -count)
        resume()
    }

    private func change(by count: Int) {
        total += count
        if counted == nil { counted = memory() }
        counted?.change(by: count)
        if total == 0 { counted = nil }
    }

    private var mayRead: Bool { total <= Self.unreadLimit || counted?.isExceeded != true }

    func read(context: ChannelHandlerContext) {
        if mayRead { return context.read() }
        guard !isReadPending else { return }
        isReadPending = true
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: Self.pause) { me.value.lookAgain() }
    }

    private func lookAgain() {
        guard isReadPending, let context else { return }
        isReadPending = false
        read(context: context)
    }

    private func resume() { if isReadPending, mayRead { lookAgain() } }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let event = event as? StreamClosedEvent, let left = unread.removeValue(forKey: event.streamID) {
            change(by: -left)
            resume()
        }
        guard let event = event as? NIOHTTP2WindowUpdatedEvent, event.streamID == .rootStream else {
            return context.fireUserInboundEventTriggered(event)
        }
        guard let size = event.inboundWindowSize, size <= target / 2 else { return }
        let frame = HTTP2Frame(streamID: .rootStream, payload: .windowUpdate(windowSizeIncrement: target - size))
        context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    }
}
