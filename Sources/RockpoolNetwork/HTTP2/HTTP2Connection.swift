// HTTP/2 connections with clients: each stream is an exchange on the same handler as an HTTP/1 connection (RFC 9113).
import NIOCore
import NIOHTTP1
import NIOHTTP2
import RockpoolCore
import RockpoolEngine

/// Installs the handlers of an HTTP/2 connection.
enum HTTP2Connection {
    /// The maximum number of concurrent streams (RFC 9113 §5.1.2).
    static let maximumStreams = 100
    /// The initial window of a stream in bytes: request data that the client may send before it is read (§5.2).
    static let window = Int.kib(256)
    /// The longest time a client may receive nothing on any of its streams before its connection is closed; a sixth of the idle limit if
    /// that is less.
    static let patience = TimeAmount.seconds(10)
    /// The maximum number of streams that a client may reset in 30 seconds (CVE-2023-44487).
    static let resets = 200
    /// The time in which a client may send 200 pings and other control frames: a gRPC client measures its line by one ping for each turn of it.
    static let controlFrames = TimeAmount.milliseconds(100)
    /// The maximum number of CONTINUATION frames of one head (CVE-2024-27316).
    static let continuations = 5

    /// - Parameter scheme: the scheme that requests must have: `https` within TLS.
    static func install(
        on channel: any Channel, service: ConnectionService, open: OpenConnection?, scheme: OriginAddress.Scheme = .https
    ) throws {
        var connection = NIOHTTP2Handler.ConnectionConfiguration()
        connection.initialSettings = [
            HTTP2Setting(parameter: .maxConcurrentStreams, value: maximumStreams),
            HTTP2Setting(parameter: .maxHeaderListSize, value: Int(clamping: service.limits.headBytes.bytes)),
            HTTP2Setting(parameter: .initialWindowSize, value: window),
        ]
        connection.maximumSequentialContinuationFrames = continuations
        connection.controlFrameRateLimit.windowLength = controlFrames
        var stream = NIOHTTP2Handler.StreamConfiguration()
        stream.streamResetFrameRateLimit.maximumCount = resets
        let frames = NIOHTTP2Handler(mode: .server, connectionConfiguration: connection, streamConfiguration: stream)
        let closing = NIOHTTP2ServerConnectionManagementHandler(
            eventLoop: channel.eventLoop,
            configuration: .init(maxIdleTime: nil, maxAge: nil, maxGraceTime: nil, keepalive: nil))
        let backlog = StreamBacklog(
            patience: min(patience, .milliseconds(service.timeouts.idle.milliseconds / 6)), budget: open?.account?.memory ?? .own)
        let count = StreamCount(service: service, open: open, backlog: backlog)
        let fastPath = HTTP2FastPathHandler(service: service, count: count, scheme: scheme, on: channel.eventLoop)
        let arrivals = NIOLoopBound(fastPath, eventLoop: channel.eventLoop)
        let reading = NIOLoopBound(
            ConnectionWindow(target: 4 * window, memory: { open?.account?.memory }), eventLoop: channel.eventLoop)
        // A stream is writable while it has nothing unsent (to within two bytes: both marks are exclusive).
        let streams = HTTP2StreamMultiplexer(
            mode: .server, channel: channel, targetWindowSize: window, outboundBufferSizeHighWatermark: 2,
            outboundBufferSizeLowWatermark: 1
        ) { stream in
            stream.eventLoop.makeCompletedFuture {
                let gate = StreamGate(backlog, scheme: scheme) { count, stream in reading.value.delivered(count, on: stream) }
                try stream.pipeline.syncOperations.addHandlers([
                    gate, HTTP2FramePayloadToHTTP1ServerCodec(),
                    ConnectionHandler(
                        service: service, open: nil, wire: .stream, backlog: backlog, account: open?.account,
                        plain: arrivals.value.takeArriving()),
                ])
            }
        }
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(LingeringClose(), position: .first)
        if scheme == .https { try pipeline.addHandler(RecordBatch()) }
        try pipeline.addHandlers([frames, fastPath, count, reading.value, streams, closing])
    }
}

/// Inspects the first bytes of a connection (RFC 9113 §3.3). The connection preface of HTTP/2 with the frame that must follow it replaces
/// the handlers of HTTP/1; anything else is passed on, and a preface alone is refused as a request of HTTP/1.
final class PriorKnowledgeHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// The preface, which no request of HTTP/1 begins with (§3.4).
    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
    /// The place of the type of the frame behind it, and that type: SETTINGS (§4.1, §6.5).
    private static let (typePlace, settings) = (preface.count + 3, UInt8(4))
    /// How long the client may take between the preface and that frame; programs send both at once.
    private static let patience = TimeAmount.milliseconds(500)

    private let service: ConnectionService
    private let open: OpenConnection?
    private var held = ByteBuffer()
    private var isSwitching = false
    private var timer: Scheduled<Void>?

    init(service: ConnectionService, open: OpenConnection?) { (self.service, self.open) = (service, open) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        held.writeBuffer(&bytes)
        guard !isSwitching else { return }
        let known = min(held.readableBytes, Self.preface.count)
        guard held.readableBytesView.prefix(known).elementsEqual(Self.preface.prefix(known)) else { return passOn(context: context) }
        guard held.readableBytes > Self.typePlace else { return wait(context: context) }
        let type = held.getInteger(at: held.readerIndex + Self.typePlace, as: UInt8.self)
        if type == Self.settings { becomeHTTP2(context: context) } else { passOn(context: context) }
    }

    private func wait(context: ChannelHandlerContext) {
        if let connection = try? context.pipeline.syncOperations.handler(type: ConnectionHandler.self), let its = connection.context {
            // The client has begun, and has the time for a head.
            connection.enter(.head, context: its)
        }
        if timer == nil, held.readableBytes >= Self.preface.count {
            let me = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            timer = context.eventLoop.scheduleTask(in: Self.patience) { me.value.0.passOn(context: me.value.1) }
        }
        context.read()
    }

    func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }

    private func passOn(context: ChannelHandlerContext) {
        context.fireChannelRead(wrapInboundOut(held))
        context.pipeline.syncOperations.removeHandler(self, promise: nil)
    }

    private func becomeHTTP2(context: ChannelHandlerContext) {
        isSwitching = true
        timer?.cancel()
        do {
            let pipeline = context.pipeline.syncOperations
            try pipeline.handler(type: ConnectionHandler.self).leaveToHTTP2()
            try HTTP2Connection.install(on: context.channel, service: service.ofStreams, open: open, scheme: .http)
            try pipeline.removeHandler(context: pipeline.context(handlerType: FastPathHandler.self), promise: nil)
            try pipeline.removeRequestDecoder()
            try pipeline.removeHandler(context: pipeline.context(handlerType: ConnectionHandler.self), promise: nil)
        } catch {
            return context.close(promise: nil)
        }
        let me = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        // Deferred until the decoder has left, which takes a turn of the loop.
        context.eventLoop.execute {
            let (handler, context) = me.value
            handler.passOn(context: context)
            context.channel.read()
        }
    }
}

/// Closes the write side first, and receives for a moment what the client still sends (RFC 9113 §6.8, RFC 9112 §9.6): closing a socket with
/// unread bytes resets the connection, and the client may lose replies that it has not read. The handler next to the socket.
final class LingeringClose: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    /// The longest time for which the client may go on sending.
    private static let limit = TimeAmount.seconds(1)

    private var isInputClosed = false
    private var closing: (promise: EventLoopPromise<Void>?, limit: Scheduled<Void>)?

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard mode == .all, closing == nil, !isInputClosed, context.channel.isActive else {
            return context.close(mode: mode, promise: promise)
        }
        let me = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        closing = (promise, context.eventLoop.scheduleTask(in: Self.limit) { me.value.0.finish(context: me.value.1) })
        context.close(mode: .output, promise: nil)
        context.read()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if closing == nil { context.fireChannelRead(data) }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if closing == nil { context.fireChannelReadComplete() } else { context.read() }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let event = event as? ChannelEvent, event == .inputClosed {
            isInputClosed = true
            if closing != nil { return finish(context: context) }
        }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        if let (promise, limit) = closing {
            limit.cancel()
            promise?.succeed()
        }
        closing = nil
        context.fireChannelInactive()
    }

    private func finish(context: ChannelHandlerContext) {
        guard let (promise, limit) = closing else { return }
        limit.cancel()
        closing = nil
        context.close(mode: .all, promise: promise)
    }
}

/// Precedes the TLS handler on the way out (RFC 8446 §5.1).
final class RecordBatch: ChannelOutboundHandler {
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    /// Bytes of the largest record.
    private static let recordLimit = Int.kib(16)

    private var bytes = ByteBuffer()
    private var written: EventLoopPromise<Void>?

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .byteBuffer(let piece) = unwrapOutboundIn(data), piece.readableBytes <= Self.recordLimit / 2 else {
            pass(context: context)
            return context.write(data, promise: promise)
        }
        if bytes.readableBytes + piece.readableBytes > Self.recordLimit { pass(context: context) }
        bytes.writeImmutableBuffer(piece)
        written.setOrCascade(to: promise)
    }

    func flush(context: ChannelHandlerContext) {
        pass(context: context)
        context.flush()
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        pass(context: context)
        context.close(mode: mode, promise: promise)
    }

    func handlerRemoved(context: ChannelHandlerContext) { written?.fail(ChannelError.ioOnClosedChannel) }

    private func pass(context: ChannelHandlerContext) {
        guard bytes.readableBytes > 0 || written != nil else { return }
        let promise = written
        written = nil
        let batch = bytes
        bytes = ByteBuffer()
        context.write(wrapOutboundOut(.byteBuffer(batch)), promise: promise)
    }
}
