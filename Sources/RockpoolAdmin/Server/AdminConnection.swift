// One connection to the admin API: its client's time limits, and when it may be closed for another (docs/security-model.md#slow-clients).
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import RockpoolCore
import RockpoolEngine

/// Watches the parts that pass between the framework's decoder and its other handlers, and forwards them unchanged.
final class AdminConnection: ChannelDuplexHandler, DeadlineTimerOwner {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private let open: OpenConnection
    /// True if a request's body must arrive at a minimum rate. Bodies on the owner's socket have no time limit.
    private let boundsBodies: Bool
    private var progress = AdminProgress()
    private var timer: DeadlineTimer
    private var context: ChannelHandlerContext?
    /// True if a read is pending: while the server itself does not read, the client is not slow.
    private var isAsking = false
    private var isDraining = false
    private var isLeaving = false

    init(open: OpenConnection, timeouts: ClientTimeouts, bodyRate: ByteCount, boundsBodies: Bool) {
        self.open = open
        self.boundsBodies = boundsBodies
        timer = DeadlineTimer(timeouts: timeouts, bodyRate: bodyRate)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if context.channel.isActive { timer.schedule(for: self, on: context.eventLoop) }
    }

    func channelActive(context: ChannelHandlerContext) {
        timer.schedule(for: self, on: context.eventLoop)
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        timer.cancel()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer.cancel()
        self.context = nil
    }

    // MARK: Requests and responses

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if isLeaving { return }
        switch unwrapInboundIn(data) {
        case .head:
            progress.readHead()
            open.noteWork()
            updatePhase(context: context)
        case .body(let bytes):
            progress.readBody()
            if boundsBodies { timer.receive(byteCount: bytes.readableBytes) }
        case .end:
            progress.readEnd()
            updatePhase(context: context)
        }
        context.fireChannelRead(data)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        isAsking = false
        progress.readAll()
        if progress.isIdle { updatePhase(context: context) }
        context.fireChannelReadComplete()
    }

    func read(context: ChannelHandlerContext) {
        isAsking = true
        context.read()
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .end = unwrapOutboundIn(data) else { return context.write(data, promise: promise) }
        progress.wroteEnd()
        updatePhase(context: context)
        let sent = promise ?? context.eventLoop.makePromise(of: Void.self)
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        sent.futureResult.whenComplete { _ in me.value.answered() }
        context.write(data, promise: sent)
    }

    private func answered() {
        progress.sentEnd()
        guard let context else { return }
        if progress.isIdle {
            if isDraining { return context.close(promise: nil) }
            open.noteIdle(since: .now())
        }
        updatePhase(context: context)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        updatePhase(context: context)
        context.fireChannelWritabilityChanged()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is DrainEvent else { return context.fireUserInboundEventTriggered(event) }
        isDraining = true
        if progress.isIdle { context.close(promise: nil) }
    }

    // MARK: Deadlines

    private func updatePhase(context: ChannelHandlerContext) {
        let phase = progress.phase(isWritable: context.channel.isWritable, boundsBodies: boundsBodies)
        timer.enter(isLeaving ? .lingering : phase)
        if context.channel.isActive { timer.ensureScheduled(for: self, on: context.eventLoop) }
    }

    func timerFired() {
        guard let context, let phase = timer.passedPhase(for: self, on: context.eventLoop) else { return }
        switch phase {
        case .head: refuse(context: context)
        case .body where !isAsking:
            timer.forgive()
            timer.schedule(for: self, on: context.eventLoop)
        default: context.close(promise: nil)
        }
    }

    /// Answers 408 to a client that took too long to send a head (RFC 9110 §15.5.9), then closes the connection.
    private func refuse(context: ChannelHandlerContext) {
        isLeaving = true
        updatePhase(context: context)
        let channel = context.channel
        let head = HTTPResponseHead(version: .http1_1, status: .requestTimeout, headers: ["Connection": "close", "Content-Length": "0"])
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in channel.close(promise: nil) }
    }
}

/// Counts the requests read and the responses written.
struct AdminProgress {
    /// Requests that have begun, until the socket has taken the last byte of the response.
    private var unanswered = 0
    /// Of those, the requests with a response that was written completely but not yet taken by the socket.
    private var unsent = 0
    private var isReadingRequest = false
    /// True if the last read yielded at least one part of a request.
    private var madeParts = false
    /// True if the decoder holds bytes that do not form a part yet.
    private var holdsPiece = false

    /// True if no request is in progress: the connection may be closed.
    var isIdle: Bool { unanswered == 0 }

    /// Records the head of a request.
    mutating func readHead() {
        unanswered += 1
        (isReadingRequest, madeParts, holdsPiece) = (true, true, false)
    }

    /// Records a piece of the request's body.
    mutating func readBody() { madeParts = true }

    /// Records the end of the request.
    mutating func readEnd() { (isReadingRequest, madeParts) = (false, true) }

    /// Records that all bytes of the socket were read. Bytes that yielded no part are the beginning of a head.
    mutating func readAll() {
        if !madeParts, !isReadingRequest { holdsPiece = true }
        madeParts = false
    }

    /// Records that the end of a response was written.
    mutating func wroteEnd() { unsent += 1 }

    /// Records that the socket has taken the response. A response to unparsable bytes is also counted here, although no request was.
    mutating func sentEnd() {
        unsent -= 1
        unanswered = max(0, unanswered - 1)
    }

    /// The connection's current phase, which selects its time limit.
    /// - Parameters:
    /// - isWritable: true if the client takes the bytes that are written.
    /// - boundsBodies: true if a body must arrive at a minimum rate.
    func phase(isWritable: Bool, boundsBodies: Bool) -> ConnectionDeadline.Phase {
        if unsent > 0 || !isWritable { return .writing }
        if isReadingRequest, boundsBodies { return .body }
        if isReadingRequest || unanswered > 0 { return .answering }
        return holdsPiece ? .head : .idle
    }
}

/// Sets up the accepted connections of one listener of the admin API (docs/security-model.md#clients-that-may-connect,
/// docs/security-model.md#slow-clients).
struct AdminChannel: ServerChildChannel {
    typealias Value = HTTP1Channel.Value

    let http: HTTP1Channel
    let connections: OpenConnections
    let timeouts: ClientTimeouts
    /// The networks whose clients may connect; clients on this machine may always.
    let allowed: [CIDR]

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        guard channel.isOwnersSocket || channel.clientAddress.map(allowed.admits) == true, let open = connections.admit(channel) else {
            channel.close(promise: nil)
            return channel.eventLoop.makeFailedFuture(ChannelError.ioOnClosedChannel)
        }
        let (timeouts, rate) = (timeouts, ClientLimits().bodyRate)
        let ready = http.setup(channel: channel, logger: logger).flatMapThrowing { value -> Value in
            let pipeline = channel.pipeline.syncOperations
            let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
            let connection = AdminConnection(
                open: open, timeouts: timeouts, bodyRate: rate, boundsBodies: !channel.isOwnersSocket)
            try pipeline.addHandler(connection, position: .after(decoder))
            return value
        }
        // The framework does not close a channel after its setup failed.
        ready.whenFailure { _ in channel.close(promise: nil) }
        return ready
    }

    func handle(value: Value, logger: Logger) async { await http.handle(value: value, logger: logger) }
}

extension Channel {
    /// The address of the client; nil on a Unix socket.
    var clientAddress: IPAddress? { remoteAddress?.ipAddress.flatMap { IPAddress($0) } }

    /// True if the connection came through the Unix socket in the state directory, which only the owner can open (mode 0600).
    var isOwnersSocket: Bool {
        if case .unixDomainSocket = localAddress { true } else { false }
    }
}
