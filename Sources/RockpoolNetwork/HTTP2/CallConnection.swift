// A connection to an upstream for calls: HTTP/2 within TLS, or without it by prior knowledge (RFC 9113 §3.3, §6.7, §6.8).
import NIOCore
import NIOHTTP2
import NIOSSL
import NIOTLS
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

/// Gives the calls of a connection one connection to each of their upstreams, as they would have without a proxy
/// (docs/guide/programs.md#grpc): clients share none, so that none waits for another's windows, streams or pings. On the event loop only.
final class CallConnections: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame
    typealias InboundOut = HTTP2Frame

    let loop: any EventLoop
    private let service: ConnectionService
    private let account: ClientAccount?
    /// Those that take further calls.
    private var connections: [OriginAddress: EventLoopFuture<NIOLoopBound<CallConnection>>] = [:]
    /// Calls under way.
    private var calls = 0
    private var context: ChannelHandlerContext?

    private init(service: ConnectionService, account: ClientAccount?, on loop: any EventLoop) {
        (self.service, self.account, self.loop) = (service, account, loop)
    }

    /// Returns those of the connection of a stream; the first call adds them.
    static func of(_ stream: any Channel, service: ConnectionService, account: ClientAccount?) throws -> CallConnections? {
        guard let pipeline = stream.parent?.pipeline.syncOperations else { return nil }
        if let known = try? pipeline.handler(type: CallConnections.self) { return known }
        let new = CallConnections(service: service, account: account, on: stream.eventLoop)
        // A connection on which nothing passes for as long as a tunnel may be silent is closed, if a call is under way.
        let limit = IdleStateHandler(allTimeout: .milliseconds(service.timeouts.tunnel.milliseconds))
        try pipeline.addHandlers([limit, new], position: .after(pipeline.handler(type: StreamCount.self)))
        return new
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func began() { calls += 1 }

    func ended() { calls -= 1 }

    /// Returns the connection to an upstream; opens one if there is none.
    func connection(to origin: OriginAddress, isLocalClient: Bool) -> EventLoopFuture<NIOLoopBound<CallConnection>> {
        if let known = connections[origin] { return known }
        let opened = service.dialer.connectForCalls(
            to: origin, isLocalClient: isLocalClient, client: account?.client, memory: { [account] in account?.memory }, on: loop)
        connections[origin] = opened
        let me = NIOLoopBound(self, eventLoop: loop)
        opened.whenComplete { result in
            switch result {
            case .success(let connection) where me.value.context == nil: connection.value.close()
            case .success(let connection): connection.value.onLeaving { me.value.connections[origin] = nil }
            case .failure: me.value.connections[origin] = nil
            }
        }
        return opened
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // The client asks whether its upstream is there: then that is asked, too (RFC 9113 §6.7).
        if case .ping(_, ack: false) = unwrapInboundIn(data).payload {
            for connection in connections.values { connection.whenSuccess { $0.value.ping() } }
        }
        context.fireChannelRead(data)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is IdleStateHandler.IdleStateEvent else { return context.fireUserInboundEventTriggered(event) }
        if calls > 0 { context.close(promise: nil) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        for connection in connections.values { connection.whenSuccess { $0.value.close() } }
        connections = [:]
        self.context = nil
        context.fireChannelInactive()
    }
}

/// Passes the frames of its stream on to the call, and reads no more of them than the other stream takes (RFC 9113 §5).
final class CallStream: ChannelDuplexHandler {
    typealias InboundIn = HTTP2Frame.FramePayload
    typealias OutboundIn = HTTP2Frame.FramePayload
    typealias OutboundOut = HTTP2Frame.FramePayload
    /// The reason of a reset (RFC 9113 §7).
    typealias Code = HTTP2ErrorCode

    /// Nil once both streams have ended.
    var call: RelayedCall?
    private var context: ChannelHandlerContext?
    private var isReadPending = false
    /// Of a reset by the other end.
    private var code: Code?
    private(set) var isClosed = false

    /// Its number; nil before its first frame.
    var number: HTTP2StreamID? { try? context?.channel.syncOptions?.getOption(HTTP2StreamChannelOptions.streamID) }

    /// True if it holds nothing unsent.
    var isWritable: Bool { context?.channel.isWritable ?? false }

    func write(_ payload: HTTP2Frame.FramePayload, promise: EventLoopPromise<Void>? = nil) {
        guard let context, !isClosed else { return promise?.fail(ChannelError.ioOnClosedChannel) ?? () }
        context.write(wrapOutboundOut(payload), promise: promise)
    }

    func flush() { context?.flush() }

    /// Ends the stream where it is: what is unsent is dropped.
    func reset(_ code: Code) {
        guard let context, !isClosed else { return }
        context.writeAndFlush(wrapOutboundOut(.rstStream(code)), promise: nil)
    }

    /// Closes a stream on which nothing was sent.
    func abandon() { context?.close(promise: nil) }

    /// Reads on after a pause.
    func resume() {
        guard isReadPending else { return }
        isReadPending = false
        context?.read()
    }

    // MARK: channel

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        end()
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { call?.receive(unwrapInboundIn(data), from: self) }

    func channelReadComplete(context: ChannelHandlerContext) { call?.flush(after: self) }

    func read(context: ChannelHandlerContext) {
        if call?.mayRead(from: self) == false { isReadPending = true } else { context.read() }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable { call?.resume(before: self) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let error = error as? NIOHTTP2Errors.StreamClosed { code = error.errorCode }
    }

    func channelInactive(context: ChannelHandlerContext) { end() }

    private func end() {
        guard !isClosed else { return }
        isClosed = true
        call?.ended(self, code: code)
    }
}

/// Connections to upstreams for calls, under the rules of tunnels (RFC 7301, RFC 9113 §3.2).
extension TunnelDialer {
    /// Opens a connection of HTTP/2: chosen within TLS, known beforehand without it. Fails with `TransferFailure` or the socket's error.
    /// - Parameter memory: the client's share of the memory for bodies.
    func connectForCalls(
        to origin: OriginAddress, isLocalClient: Bool, client: ClientID?, memory: @escaping @Sendable () -> SharedBudget.Share?,
        on loop: any EventLoop
    ) -> EventLoopFuture<NIOLoopBound<CallConnection>> {
        let settings = engine.upstream(for: origin)?.tls ?? TLSSettings()
        let context: EventLoopFuture<NIOSSLContext?> =
            origin.scheme == .https ? settings.clientContext(offering: ["h2"], on: loop).map { $0 } : loop.makeSucceededFuture(nil)
        return context.flatMap { context in
            dial(origin, isLocalClient: isLocalClient, client: client, isCall: true, on: loop) { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let context { try channel.speakTLS(with: origin.host, context: context) }
                }
            }.flatMap { channel in
                let ready = loop.makePromise(of: NIOLoopBound<CallConnection>.self)
                let install = { @Sendable in
                    NIOLoopBound(try CallConnection.install(on: channel, memory: memory), eventLoop: loop)
                }
                do {
                    if context == nil {
                        ready.succeed(try install())
                    } else {
                        try channel.pipeline.syncOperations.addHandler(
                            ProtocolChoice(within: connectTimeout) { ready.completeWith($0.flatMap { _ in Result(catching: install) }) })
                    }
                } catch {
                    ready.fail(error)
                }
                ready.futureResult.whenFailure { _ in channel.close(promise: nil) }
                return channel.setOption(.autoRead, value: true).flatMap {
                    channel.read()
                    return ready.futureResult
                }
            }
        }
    }
}

/// Waits for the end of the handshake, in which the upstream must choose HTTP/2.
private final class ProtocolChoice: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let limit: TimeSpan
    private var done: ((Result<Void, any Error>) -> Void)?
    private var timer: Scheduled<Void>?

    init(within limit: TimeSpan, _ done: @escaping (Result<Void, any Error>) -> Void) { (self.limit, self.done) = (limit, done) }

    func handlerAdded(context: ChannelHandlerContext) {
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        timer = context.eventLoop.scheduleTask(in: .milliseconds(limit.milliseconds)) {
            me.value.finish(.failure(TransferFailure(kind: .connectTimeout, sent: .no, detail: "no end of the TLS handshake")))
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case TLSUserEvent.handshakeCompleted(let negotiated)? = event as? TLSUserEvent else {
            return context.fireUserInboundEventTriggered(event)
        }
        if negotiated == "h2" {
            finish(.success(()))
            context.pipeline.syncOperations.removeHandler(self, promise: nil)
        } else {
            finish(
                .failure(TransferFailure(kind: .protocolError, sent: .no, detail: "it does not speak HTTP/2, which gRPC needs")))
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        finish(.failure(TransferFailure(kind: .reset, sent: .no, detail: "the connection ended during the TLS handshake")))
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { finish(.failure(TransferFailure(connecting: error))) }

    private func finish(_ result: Result<Void, any Error>) {
        timer?.cancel()
        done?(result)
        done = nil
    }
}
