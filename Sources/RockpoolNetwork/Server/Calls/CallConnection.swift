// A connection to an upstream for calls: HTTP/2 within TLS, or without it by prior knowledge (RFC 9113 §3.3, §6.7, §6.8).
import NIOCore
import NIOHTTP2
import RockpoolCore
import RockpoolEngine

/// Opens a stream for each call until the upstream says that it takes no more, or is silent where it was asked. On the event loop only.
final class CallConnection: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame
    typealias InboundOut = HTTP2Frame
    typealias OutboundOut = HTTP2Frame

    /// The largest head that an upstream may send, in bytes (RFC 9113 §6.5.2).
    private static let headLimit = Int(ResponseHeads.headLimit.bytes)
    /// Bytes of a call's messages that may wait for the upstream's window before no more are read.
    private static let unsent = (high: Int.kib(64), low: Int.kib(32))
    /// The time for which the answer to a ping may take; gRPC's own default.
    private static let pingLimit = TimeAmount.seconds(20)
    /// Resets and pings in 30 seconds. A server resets each call whose client could still send, and measures its line by pings.
    private static let frames = 4000

    let window: ConnectionWindow
    private let channel: any Channel
    private let multiplexer: HTTP2StreamMultiplexer
    private var context: ChannelHandlerContext?
    private var open: Set<HTTP2StreamID> = []
    /// The last stream that the upstream processes; nil while it takes further ones.
    private var last: HTTP2StreamID?
    private var isLeaving = false
    private var leaving: () -> Void = {}
    private var waiting: Scheduled<Void>?

    private init(on channel: any Channel, memory: @escaping () -> SharedBudget.Share?) {
        self.channel = channel
        window = ConnectionWindow(target: 4 * HTTP2Connection.window, memory: memory)
        multiplexer = HTTP2StreamMultiplexer(
            mode: .client, channel: channel, targetWindowSize: HTTP2Connection.window, outboundBufferSizeHighWatermark: Self.unsent.high,
            outboundBufferSizeLowWatermark: Self.unsent.low
        ) { $0.close() }
    }

    /// Installs the handlers on a channel to an upstream.
    static func install(on channel: any Channel, memory: @escaping () -> SharedBudget.Share?) throws -> CallConnection {
        var settings = NIOHTTP2Handler.ConnectionConfiguration()
        settings.initialSettings = [
            HTTP2Setting(parameter: .enablePush, value: 0), HTTP2Setting(parameter: .maxHeaderListSize, value: headLimit),
            HTTP2Setting(parameter: .initialWindowSize, value: HTTP2Connection.window),
        ]
        settings.controlFrameRateLimit.maximumCount = frames
        var streams = NIOHTTP2Handler.StreamConfiguration()
        streams.streamResetFrameRateLimit.maximumCount = frames
        let connection = CallConnection(on: channel, memory: memory)
        try channel.pipeline.syncOperations.addHandlers([
            NIOHTTP2Handler(mode: .client, connectionConfiguration: settings, streamConfiguration: streams), connection, connection.window,
            connection.multiplexer,
        ])
        return connection
    }

    /// Opens a stream.
    func openStream(_ initialize: @escaping (any Channel) throws -> Void) -> EventLoopFuture<Void> {
        guard context != nil else { return channel.eventLoop.makeFailedFuture(ChannelError.ioOnClosedChannel) }
        let stream = channel.eventLoop.makePromise(of: (any Channel).self)
        let initialize = NIOLoopBound(initialize, eventLoop: channel.eventLoop)
        multiplexer.createStreamChannel(promise: stream) { channel in
            channel.eventLoop.makeCompletedFuture { try initialize.value(channel) }
        }
        return stream.futureResult.map { _ in }
    }

    /// Calls `leaving` once it takes no further calls.
    func onLeaving(_ leaving: @escaping () -> Void) {
        if isLeaving { leaving() } else { self.leaving = leaving }
    }

    /// The code with which a client is told of a reset: a call of which the upstream processed nothing may be made again (§8.7).
    func meaning(of code: HTTP2ErrorCode, on stream: HTTP2StreamID?) -> HTTP2ErrorCode {
        if let last, let stream, stream > last { .refusedStream } else { code }
    }

    /// Asks whether the upstream is there, and closes the connection if it does not answer.
    func ping() {
        guard let context, waiting == nil, !open.isEmpty else { return }
        let frame = HTTP2Frame(streamID: .rootStream, payload: .ping(HTTP2PingData(withInteger: 7625), ack: false))
        context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
        let channel = context.channel
        waiting = context.eventLoop.scheduleTask(in: Self.pingLimit) { channel.close(promise: nil) }
    }

    /// Closes the connection, which its client does not need any more.
    func close() { context?.close(promise: nil) }

    // MARK: channel

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        leave()
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data).payload {
        case .goAway(let last, _, _):
            self.last = last
            leave()
            if open.isEmpty { close() }
        case .ping(_, ack: true):
            waiting?.cancel()
            waiting = nil
        default: break
        }
        context.fireChannelRead(data)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case let event as NIOHTTP2StreamCreatedEvent: open.insert(event.streamID)
        case let event as StreamClosedEvent:
            open.remove(event.streamID)
            if open.isEmpty, isLeaving {
                let channel = context.channel
                context.eventLoop.execute { channel.close(promise: nil) }
            }
        case let event as ChannelEvent where event == .inputClosed: close()
        default: break
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.fireErrorCaught(error)
        // An error of one stream does not affect the others.
        if !(error is NIOHTTP2Errors.StreamError), !(error is NIOHTTP2Errors.ContentLengthViolated) { context.close(promise: nil) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        waiting?.cancel()
        leave()
        context.fireChannelInactive()
    }

    private func leave() {
        isLeaving = true
        leaving()
        leaving = {}
    }
}
