// One client connection: requests in order, one exchange at a time, with backpressure on reads (RFC 9112 §9).
import DequeModule
import HTTPTypes
import NIOCore
import NIOHTTP1
import RockpoolCore
import RockpoolEngine

/// Turns decoded request parts into exchanges and keeps their replies in order.
///
/// While an exchange runs, further requests wait: in this queue if they were already read, otherwise in the socket. The reply itself is
/// written by a task (`ReplyWriter`), which waits for a slow client.
///
/// An HTTP/2 stream is a connection of one exchange.
final class ConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    let service: ConnectionService
    /// Nil for a stream, because its connection is counted once.
    let open: OpenConnection?
    let wire: ReplyWire
    /// The unsent bytes of all streams of a stream's client.
    private let backlog: StreamBacklog?
    var context: ChannelHandlerContext?
    private var waiting = Deque<HTTPServerRequestPart>()
    var current: CurrentExchange?
    private var deadline: ConnectionDeadline
    var timer: Scheduled<Void>?
    /// The minimum progress in bytes per idle limit; a slower client is disconnected.
    private static let leastTaken = Int.kib(256)
    /// The unsent bytes when the wait for the client began, or at its last progress.
    private var unsentBytes = 0
    private var timerAt = NIODeadline.distantFuture
    private var parseFailure: Refusal?
    var requests = 0
    /// The plain request with the head that the decoder receives next.
    private var arriving: PlainCopy?
    /// True if the last decoded part was the end of a request.
    private var endsWithRequest = false
    private var isReadPending = false
    var isInputClosed = false
    private var isDraining = false
    var isLeaving = false
    /// True if the current request opens a tunnel: bytes after it belong to the tunnel.
    var opensTunnel = false

    init(service: ConnectionService, open: OpenConnection?, wire: ReplyWire = .plain, backlog: StreamBacklog? = nil) {
        (self.service, self.open, self.wire, self.backlog) = (service, open, wire, backlog)
        self.deadline = ConnectionDeadline(timeouts: service.timeouts, bodyRate: service.limits.bodyRate, now: .now())
    }

    // MARK: channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if context.channel.isActive { scheduleTimer(context) }
    }

    func channelActive(context: ChannelHandlerContext) {
        scheduleTimer(context)
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        leave(context)
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if isLeaving { return }
        let part = unwrapInboundIn(data)
        if case .end = part { endsWithRequest = true } else { endsWithRequest = false }
        waiting.append(part)
        advance(context)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        ensureTimer(context)
        context.fireChannelReadComplete()
    }

    func read(context: ChannelHandlerContext) {
        if mayRead { context.read() } else { isReadPending = true }
    }

    /// Passes on the reply's bytes; after the first no interim response may follow.
    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        current?.hasReplied = true
        context.write(data, promise: promise)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        unsentBytes = unsent(context)
        if context.channel.isWritable, current == nil, !isLeaving { open?.noteIdle(since: .now()) }
        enter(context.channel.isWritable ? phaseBesideWriting : .writing, context)
        context.fireChannelWritabilityChanged()
    }

    private var phaseBesideWriting: ConnectionDeadline.Phase {
        if isLeaving { return .lingering }
        guard let current else { return .idle }
        return current.isRequestEnded ? .answering : .body
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case let event as ChannelEvent where event == .inputClosed:
            isInputClosed = true
            current?.body?.fail(.clientLeft)
            if current == nil || isLeaving { closeOnceFlushed(context) }
        case is DrainEvent:
            isDraining = true
            if current == nil, !isLeaving { closeAfterReply(context) }
        default:
            context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let failure = error as? HTTPParserError else { return context.close(promise: nil) }
        fail(Refusal(parserError: failure), context)
    }

    /// Handles a malformed request or one that exceeds a limit: its remainder is abandoned.
    private func fail(_ refusal: Refusal, _ context: ChannelHandlerContext) {
        parseFailure = refusal
        if let exchange = current, !exchange.isRequestEnded, !exchange.hasReplied { abandon(exchange, parseFailure, context) }
        advance(context)
    }

    /// Abandons the exchange of a malformed body: the upstream must not see it as complete, and the client gets the reason.
    private func abandon(_ exchange: CurrentExchange, _ refusal: Refusal?, _ context: ChannelHandlerContext) {
        exchange.body?.fail(.malformed(refusal?.detail ?? ""))
        exchange.task?.cancel()
        current = nil
        waiting.removeAll()
    }

    // MARK: before the decoder

    /// Refuses the current request because its body exceeds a limit or is malformed.
    func refuseBody(_ refusal: Refusal) {
        if let context { fail(refusal, context) }
    }

    /// True if the next bytes may be answered immediately: no exchange is running, and the channel is writable.
    func mayAnswerAtOnce(_ context: ChannelHandlerContext) -> Bool {
        current == nil && waiting.isEmpty && !isLeaving && !isDraining && parseFailure == nil
            && requests + 1 < service.limits.requestsPerConnection && context.channel.isWritable
    }

    /// Counts a request that was answered immediately.
    func answeredAtOnce() { requests += 1 }

    /// Returns to the idle phase, after requests that were answered immediately.
    func isIdleAgain(_ context: ChannelHandlerContext) {
        let now = NIODeadline.now()
        // A client that is still receiving its reply is not idle.
        if context.channel.isWritable { open?.noteIdle(since: now) } else { open?.noteWork() }
        if deadline.phase != .writing { deadline.enter(.idle, now: now) }
    }

    /// Passes bytes to the decoder; `plain` is the request with the first of the heads in them, if it is a plain one.
    /// - Returns: true if the last decoded part was the end of a request.
    func decode(after plain: PlainCopy?, _ pass: () -> Void) -> Bool {
        if deadline.phase == .idle || deadline.phase == .head { deadline.enter(.head, now: .now()) }
        endsWithRequest = false
        arriving = plain
        pass()
        arriving = nil
        return endsWithRequest
    }

    /// True if bytes between bodies belong to a request's head.
    var readsHeads: Bool { !isLeaving && !opensTunnel }

    /// The framing of the body that the next bytes belong to; `.none` where they belong to a head.
    var framingUnderWay: Framing {
        guard let current, !current.isRequestEnded, !isLeaving else { return .none }
        return current.framing
    }

    // MARK: requests

    private var mayRead: Bool {
        guard !isLeaving else { return true }
        guard let current else { return waiting.isEmpty }
        return !current.isRequestEnded && !current.isBodyPaused
    }

    private func advance(_ context: ChannelHandlerContext) {
        while !isLeaving {
            guard current == nil || current?.isRequestEnded == false, let part = waiting.popFirst() else { break }
            switch part {
            case .head(let head): begin(head, context)
            case .body(let bytes): receive(bytes)
            case .end: endRequest()
            }
        }
        if current == nil, waiting.isEmpty, !isLeaving {
            if let parseFailure { refuse(parseFailure, context) } else if isInputClosed { context.close(promise: nil) }
        }
        resumeReading(context)
    }

    private func resumeReading(_ context: ChannelHandlerContext) {
        if isReadPending, mayRead {
            isReadPending = false
            context.read()
        }
    }

    private func begin(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        requests += 1
        open?.noteWork()
        do throws(Refusal) {
            let incoming = try IncomingHead(head, limits: service.limits, isStream: wire == .stream)
            switch try service.resolution.destination(of: incoming.target, fields: incoming.fields) {
            case .tunnel(let host, let port): try connect(host: host, port: port, context)
            case .origin(let origin, let target):
                if Via.containsLoop(incoming.fields, name: service.viaName) { throw Refusal.loop }
                let request = incoming.request(origin: origin, target: target, viaName: service.viaName)
                if incoming.wantsWebSocket { return upgrade(request, incoming, context) }
                start(request, incoming, context)
            }
        } catch {
            refuse(error, isHead: head.method == .HEAD, context)
        }
    }

    private func start(_ request: RequestHead, _ incoming: IncomingHead, _ context: ChannelHandlerContext) {
        let body = incoming.framing == .none ? nil : BodyPipe()
        let keepsAlive = incoming.keepsAlive && !isDraining && requests < service.limits.requestsPerConnection
        let number = requests
        current = CurrentExchange(
            number: number, body: body, expectsContinue: incoming.expectsContinue, isOldClient: incoming.isOldClient,
            framing: incoming.framing)
        enter(body == nil ? .answering : .body, context)
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        let loop = context.eventLoop
        body?.onSignal { signal in loop.execute { me.value.hear(signal, of: number) } }
        let exchange = Exchange(
            request: request, body: body, bodyLength: incoming.framing.length, client: service.resolution.listener,
            isLocalClient: isLocal(context.channel), interim: { head in loop.execute { me.value.sendInterim(head, of: number) } })
        let writer = ReplyWriter(
            channel: context.channel, wire: wire, isHead: request.method == .head, isOldClient: incoming.isOldClient,
            keepsAlive: keepsAlive, backlog: backlog)
        let engine = service.engine
        let plain = arriving
        // A write accesses files and may run a merge: not on the event loop.
        let executor = body == nil && (request.method == .get || request.method == .head) ? LoopExecutor(loop) : nil
        current?.task = Task(executorPreference: executor) {
            let reply = await engine.respond(exchange)
            guard writer.wire != .stream else { return loop.execute { me.value.send(reply, by: writer, of: number) } }
            let staysOpen = await writer.finish(reply)
            loop.execute { me.value.finishExchange(staysOpen, of: number) }
            if let plain, reply.trace.verdict == .hit, case .bytes = reply.body { await engine.fastPath.warm(plain, for: request) }
        }
    }

    private func receive(_ bytes: ByteBuffer) {
        guard let body = current?.body else { return }
        deadline.receive(bytes.readableBytes, now: .now())
        if !body.offer(bytes) { current?.isBodyPaused = true }
    }

    private func endRequest() {
        current?.isRequestEnded = true
        current?.body?.finish()
        if current != nil { deadline.enter(.answering, now: .now()) }
    }

    private func hear(_ signal: BodyPipe.Signal, of number: Int) {
        guard let context, var exchange = current, exchange.number == number else { return }
        switch signal {
        case .wanted:
            if exchange.expectsContinue, !exchange.hasReplied { sendInterim(ResponseHead(status: 100), of: number) }
        case .drained:
            exchange.isBodyPaused = false
            current = exchange
            if !exchange.isRequestEnded { deadline.forgive(now: .now()) }
            resumeReading(context)
        case .abandoned:
            // The rest of this body has no reader: it is received and dropped, and the connection ends after the reply.
            exchange.isBodyPaused = false
            current = exchange
            resumeReading(context)
        }
    }

    private func sendInterim(_ head: ResponseHead, of number: Int) {
        guard let context, let exchange = current, exchange.number == number, !exchange.hasReplied, !exchange.isOldClient else { return }
        if head.status == 100 {
            guard exchange.expectsContinue else { return }
            current?.expectsContinue = false
            deadline.forgive(now: .now())
        }
        if wire == .stream { return context.writeAndFlush(NIOAny(ReplyWriter.headPart(head, framing: .bodiless)), promise: nil) }
        var buffer = context.channel.allocator.buffer(capacity: 128)
        HeadSerializer.write(head, framing: .bodiless, connection: nil, into: &buffer)
        context.writeAndFlush(wrapOutboundOut(.byteBuffer(buffer)), promise: nil)
    }

    /// - Parameter staysOpen: nil when the reply and the connection broke off.
    func finishExchange(_ staysOpen: Bool?, of number: Int) {
        guard let context, let exchange = current, exchange.number == number else { return }
        current = nil
        guard let staysOpen else { return context.close(promise: nil) }
        guard staysOpen, !isDraining, exchange.isRequestEnded, !isInputClosed || !waiting.isEmpty else { return closeAfterReply(context) }
        enter(.idle, context)
        open?.noteIdle(since: .now())
        advance(context)
    }

    // MARK: end

    /// Closes the write side and waits briefly for the client to close: an immediate close with unread bytes would reset the connection and
    /// could discard the reply (RFC 9112 §9.6).
    func closeAfterReply(_ context: ChannelHandlerContext) {
        isLeaving = true
        waiting.removeAll()
        if wire == .stream { return endStream(context) }
        if isInputClosed { return closeOnceFlushed(context) }
        enter(context.channel.isWritable ? .lingering : .writing, context)
        context.close(mode: .output, promise: nil)
        resumeReading(context)
    }

    private func closeOnceFlushed(_ context: ChannelHandlerContext) {
        let channel = context.channel
        context.writeAndFlush(wrapOutboundOut(.byteBuffer(ByteBuffer()))).whenComplete { _ in channel.close(promise: nil) }
    }

    private func leave(_ context: ChannelHandlerContext) {
        isLeaving = true
        timer?.cancel()
        waiting.removeAll()
        current?.body?.fail(.clientLeft)
        current?.task?.cancel()
        current = nil
    }

    private func scheduleTimer(_ context: ChannelHandlerContext) {
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        timerAt = deadline.at
        timer = context.eventLoop.scheduleTask(deadline: timerAt) { me.value.timerFired() }
    }

    func enter(_ phase: ConnectionDeadline.Phase, _ context: ChannelHandlerContext) {
        deadline.enter(phase, now: .now())
        ensureTimer(context)
    }

    /// Sets the timer earlier if the deadline requires it; a timer that fires too early is rescheduled.
    private func ensureTimer(_ context: ChannelHandlerContext) {
        guard deadline.at < timerAt else { return }
        timer?.cancel()
        scheduleTimer(context)
    }

    /// Zero for a stream, whose progress is visible as writability after each received piece.
    private func unsent(_ context: ChannelHandlerContext) -> Int { wire == .stream ? 0 : context.channel.unsentBytes }

    private func timerFired() {
        guard let context else { return }
        timerAt = .distantFuture
        guard deadline.at <= .now() else { return scheduleTimer(context) }
        switch deadline.phase {
        case .head where !isLeaving:
            refuse(Refusal(status: 408, problem: "bad-request", detail: "the request head took too long"), context)
        case .writing where unsent(context) <= unsentBytes - Self.leastTaken:
            unsentBytes = unsent(context)
            deadline.enter(.writing, now: .now())
            scheduleTimer(context)
        // Reading is paused by the proxy, or the body was not requested yet.
        case .body where current?.isBodyPaused == true || current?.expectsContinue == true:
            deadline.forgive(now: .now())
            scheduleTimer(context)
        case .body where !isLeaving && current?.isRequestEnded == false && current?.hasReplied == false:
            fail(Refusal(status: 408, problem: "bad-request", detail: "the request body took too long"), context)
        default: context.close(promise: nil)
        }
    }
}

extension Channel {
    /// Bytes written that the socket has not accepted yet. On the event loop only.
    fileprivate var unsentBytes: Int { (try? syncOptions?.getOption(.bufferedWritableBytes)) ?? 0 }
}
