// One client connection: requests in order, one exchange at a time, with backpressure on reads (RFC 9112 §9).
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
final class ConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler, DeadlineTimerOwner {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    let service: ConnectionService
    /// Nil for a stream, because its connection is counted once.
    let open: OpenConnection?
    /// The client of a stream.
    private let streamAccount: ClientAccount?
    let wire: ReplyWire
    /// The unsent bytes of all streams of a stream's client.
    private let backlog: StreamBacklog?
    var context: ChannelHandlerContext?
    private var waiting = RequestQueue()
    var current: CurrentExchange?
    var timer: DeadlineTimer
    private var writeProgress: WriteProgress
    /// The place of replies that were sent at once, while the client does not take them.
    private var untaken: ExchangePlace?
    /// The place of a relayed request that takes the full path.
    var kept: ExchangePlace?
    private var parseFailure: Refusal?
    var requests: Int
    /// True if the client is on this machine; nil before the first request.
    private var knownClientLocal: Bool?
    /// The plain request with the head that the decoder receives next.
    private var arriving: PlainCopy?
    /// The head of a plain write that the decoder receives next.
    var arrivingWrite: PlainWriteCopy?
    /// The response to the request that the decoder receives next, if a relay has it.
    var early: EarlyAnswer?
    /// True if that request was lost with a relay's connection.
    var wasLost = false
    /// True while bytes wait to be decoded, for the end of a relayed exchange.
    var holdsBytes = false
    private var isReadPending = false
    var isInputClosed = false
    private var isDraining = false
    /// The client's IP address; nil before the first request.
    private var clientAddress: String?
    var isLeaving = false
    /// True if the current request opens a tunnel: bytes after it belong to the tunnel.
    var opensTunnel = false
    /// What the access log is still to have of the current request.
    var unlogged = Unlogged.unread

    /// - Parameters:
    ///   - past: of a connection that has rested.
    ///   - account: the client of a stream.
    ///   - plain: the request of a stream, if it is a plain one.
    init(
        service: ConnectionService, open: OpenConnection?, wire: ReplyWire = .plain, past: RestingConnections.Past? = nil,
        backlog: StreamBacklog? = nil, account: ClientAccount? = nil, plain: PlainCopy? = nil
    ) {
        streamAccount = account
        requests = past?.requests ?? 0
        (self.service, self.open, self.wire, self.backlog, arriving) = (service, open, wire, backlog, plain)
        timer = DeadlineTimer(
            timeouts: service.timeouts, bodyRate: service.limits.bodyRate,
            rest: wire == .plain && open != nil ? past?.patience ?? RestingConnections.patience : nil)
        writeProgress = WriteProgress(isStream: wire == .stream)
    }

    // MARK: channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if context.channel.isActive { timer.schedule(for: self, on: context.eventLoop) }
    }

    func channelActive(context: ChannelHandlerContext) {
        timer.schedule(for: self, on: context.eventLoop)
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        isLeaving = true
        timer.cancel()
        waiting.removeAll()
        current?.cancel(failure: .clientLeft)
        current = nil
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer.cancel()
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if isLeaving { return }
        waiting.append(unwrapInboundIn(data))
        advance(context: context)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        timer.ensureScheduled(for: self, on: context.eventLoop)
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
        writeProgress.restart(on: context.channel)
        if context.channel.isWritable {
            untaken = nil
            if current == nil, !isLeaving { open?.noteIdle(since: .now()) }
        }
        enter(context.channel.isWritable ? phaseBesideWriting : .writing, context: context)
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
            if current == nil || isLeaving { closeOnceFlushed(context: context) }
        case is DrainEvent:
            isDraining = true
            if current == nil, !isLeaving { closeAfterReply(context: context) }
        default:
            context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let failure = error as? HTTPParserError else { return context.close(promise: nil) }
        fail(Refusal(parserError: failure), context: context)
    }

    /// Handles a malformed request or one that exceeds a limit: its remainder is abandoned.
    private func fail(_ refusal: Refusal, context: ChannelHandlerContext) {
        parseFailure = refusal
        if let exchange = current, !exchange.isRequestEnded, !exchange.hasReplied {
            // The upstream must not see the body as complete, and the client gets the reason.
            exchange.cancel(failure: .malformed(refusal.detail))
            current = nil
            waiting.removeAll()
        }
        advance(context: context)
    }

    // MARK: before the decoder

    /// Refuses the current request because its body exceeds a limit or is malformed.
    func refuseBody(_ refusal: Refusal) {
        if let context { fail(refusal, context: context) }
    }

    /// True if the next bytes may be answered immediately: no exchange is running, and the channel is writable.
    func mayAnswerAtOnce(context: ChannelHandlerContext) -> Bool {
        current == nil && waiting.isEmpty && !isLeaving && !isDraining && parseFailure == nil
            && requests + 1 < service.limits.requestsPerConnection && context.channel.isWritable
    }

    /// Counts a request that was answered immediately.
    func answeredAtOnce() { requests += 1 }

    /// Returns to the idle phase, after requests that were answered immediately.
    func isIdleAgain(context: ChannelHandlerContext) {
        let now = NIODeadline.now()
        // A client that is still receiving its reply is not idle.
        if context.channel.isWritable {
            open?.noteIdle(since: now)
        } else if untaken == nil {
            do throws(Refusal) { untaken = try place(.request) } catch { return context.close(promise: nil) }
        }
        if timer.phase != .writing { timer.enter(.idle, now: now) }
    }

    /// Passes bytes to the decoder; `plain` is the request with the first of the heads in them, if it is a plain one.
    /// - Returns: true if the last decoded part was the end of a request.
    func decode(after plain: PlainCopy?, pass: () -> Void) -> Bool {
        if timer.phase == .idle || timer.phase == .head { timer.enter(.head) }
        waiting.beginDecoding()
        arriving = plain
        pass()
        (arriving, arrivingWrite) = (nil, nil)
        return waiting.endsWithRequest
    }

    /// True if bytes between bodies belong to a request's head.
    var readsHeads: Bool { !isLeaving && !opensTunnel }

    /// The framing of the body that the next bytes belong to; `.none` where they belong to a head.
    var framingUnderWay: Framing {
        if let framing = waiting.framing { return isLeaving ? .none : framing }
        guard let current, !current.isRequestEnded, !isLeaving else { return .none }
        return current.framing
    }

    // MARK: requests

    private var mayRead: Bool {
        guard !isLeaving else { return true }
        guard let current else { return waiting.isEmpty }
        if current.isRelayed { return !holdsBytes }
        return !current.isRequestEnded && !current.isBodyPaused
    }

    private func advance(context: ChannelHandlerContext) {
        while !isLeaving {
            guard current == nil || current?.isRequestEnded == false, let part = waiting.removeFirst() else { break }
            switch part {
            case .head(let head): begin(head, context: context)
            case .body(let bytes): current?.receive(bytes, timer: &timer)
            case .end: current?.endRequest(timer: &timer)
            }
        }
        if current == nil, waiting.isEmpty, !isLeaving {
            if let parseFailure {
                refuse(parseFailure, context: context)
            } else if isInputClosed, !holdsBytes {
                context.close(promise: nil)
            }
        }
        resumeReading(context: context)
    }

    private func resumeReading(context: ChannelHandlerContext) {
        if isReadPending, mayRead {
            isReadPending = false
            context.read()
        }
    }

    /// The client, as the limits tell clients apart.
    var account: ClientAccount? { open?.account ?? streamAccount }
    var client: ClientID? { account?.client }

    /// Returns the place of something that begins on this connection; nil for a stream, which has one.
    ///
    /// Throws `Refusal` where its client has as much under way as it may.
    func place(_ kind: ExchangePlace.Kind) throws(Refusal) -> ExchangePlace? {
        if let kept {
            self.kept = nil
            return kept
        }
        return try open?.place(kind)
    }

    private func begin(_ head: HTTPRequestHead, context: ChannelHandlerContext) {
        requests += 1
        unlogged = service.unlogged(head)
        do throws(Refusal) {
            let incoming = try IncomingHead(head, limits: service.limits, isStream: wire == .stream)
            let admission = service.admission(incoming.fields, on: context.channel, wire: wire)
            if case .refused(let reply) = admission { return end(with: reply, isHead: head.method == .HEAD, context: context) }
            switch try service.resolution.destination(of: incoming.target, fields: incoming.fields, host: incoming.host) {
            case .tunnel(let host, let port):
                guard case .open(let check) = admission else { return try tunnel.connect(host: host, port: port, context: context) }
                tunnel.admit(incoming, by: check, context: context) { [tunnel] context throws(Refusal) in
                    try tunnel.connect(host: host, port: port, context: context)
                }
            case .origin(let origin, let target):
                if Via.containsLoop(incoming.fields, name: service.viaName) { throw Refusal.loop }
                var request = incoming.request(origin: origin, target: target, viaName: service.viaName)
                let passage = service.resolution.passage(of: incoming.target, fields: incoming.fields, host: incoming.host)
                passage?.represent(&request)
                if try relaysCall(request, incoming: incoming, passage: passage, context: context) { return }
                if incoming.wantsWebSocket {
                    guard case .open(let check) = admission else {
                        return try tunnel.upgrade(request, incoming: incoming, context: context)
                    }
                    return tunnel.admit(incoming, by: check, context: context) { [tunnel, request] context throws(Refusal) in
                        try tunnel.upgrade(request, incoming: incoming, context: context)
                    }
                }
                let place = try place(.request)
                start(request, incoming: incoming, passage: passage, admission: admission, context: context)
                current?.place = place
            }
        } catch {
            refuse(error, isHead: head.method == .HEAD, context: context)
        }
    }

    private func start(
        _ request: RequestHead, incoming: IncomingHead, passage: GatewayPassage?, admission: ProxyAdmission, context: ChannelHandlerContext
    ) {
        let account = account
        let body = incoming.framing == .none ? nil : BodyPipe(budget: account?.memory ?? .own)
        let keepsAlive = incoming.keepsAlive && !isDraining && requests < service.limits.requestsPerConnection
        let number = requests
        current = CurrentExchange(
            number: number, body: body, expectsContinue: incoming.expectsContinue, isOldClient: incoming.isOldClient,
            framing: incoming.framing)
        enter(body == nil ? .answering : .body, context: context)
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        let loop = context.eventLoop
        body?.onSignal { signal in loop.execute { me.value.receive(signal: signal, exchange: number) } }
        var exchange = Exchange(
            request: request, body: body, bodyLength: incoming.framing.length,
            client: passage?.client(at: service.resolution.listener) ?? service.resolution.listener,
            isLocalClient: isClientLocal(context.channel), account: account,
            interim: { head in loop.execute { me.value.sendInterim(head, exchange: number) } }
        )
        exchange.forwarded =
            passage?.forwarded(from: context.channel.remoteAddress?.ipAddress, listener: service.resolution.listener) ?? [:]
        exchange.gateway = passage?.address
        exchange.clientAddress = clientAddress ?? context.channel.remoteAddress?.ipAddress ?? ""
        clientAddress = exchange.clientAddress
        if wire != .stream { (exchange.plain, exchange.plainWrite, exchange.early) = (arriving, arrivingWrite, early) }
        arrivingWrite = nil
        exchange.needsFreshConnection = wasLost
        (early, wasLost) = (nil, false)
        exchange.loop = LoopExecutor(loop)
        // A write accesses files and may run a merge: not on the event loop.
        let executor = body == nil && (request.method == .get || request.method == .head) ? LoopExecutor(loop) : nil
        exchange.executor = executor
        let received = exchange
        let writer = ReplyWriter(
            channel: context.channel, wire: wire, isHead: request.method == .head, isOldClient: incoming.isOldClient,
            keepsAlive: keepsAlive, acceptsTrailers: incoming.acceptsTrailers, backlog: backlog,
            sent: SentBytes(in: wire == .stream ? nil : account?.memory))
        let engine = service.engine
        let (plain, unanswered) = (arriving, unlogged)
        unlogged = .nothing
        current?.task = Task(executorPreference: executor) {
            var refusal: Reply? = if case .open(let check) = admission { await check() } else { nil }
            if case .request(let line) = unanswered, let refused = refusal {
                refusal?.ended = { engine.log(line, answered: refused, end: $0) }
            }
            let reply = if let refusal { refusal } else { await engine.respond(received) }
            if reply.isWithheld {
                reply.ended(ReplyEnd(bytes: 0))
                return loop.execute { me.value.finishExchange(number, staysOpen: nil) }
            }
            if writer.wire == .stream {
                loop.execute { me.value.send(reply, by: writer, exchange: number) }
            } else {
                let staysOpen = await writer.finish(reply)
                loop.execute { me.value.finishExchange(number, staysOpen: staysOpen) }
            }
            if let plain, reply.trace.verdict == .hit || reply.trace.verdict == .stale, reply.body.isAtHand {
                await engine.fastPath.warm(plain, for: request, through: received.gateway)
            }
        }
    }

    func isClientLocal(_ channel: any Channel) -> Bool {
        let isLocal = knownClientLocal ?? channel.isClientLocal
        knownClientLocal = isLocal
        return isLocal
    }

    private func receive(signal: BodyPipe.Signal, exchange number: Int) {
        guard let context, var exchange = current, exchange.number == number else { return }
        switch signal {
        case .wanted:
            if exchange.expectsContinue, !exchange.hasReplied { sendInterim(ResponseHead(status: 100), exchange: number) }
        case .drained:
            exchange.isBodyPaused = false
            current = exchange
            if !exchange.isRequestEnded { timer.forgive() }
            resumeReading(context: context)
        case .abandoned:
            // The rest of this body has no reader: it is received and dropped, and the connection ends after the reply.
            exchange.isBodyPaused = false
            current = exchange
            resumeReading(context: context)
        }
    }

    private func sendInterim(_ head: ResponseHead, exchange number: Int) {
        guard let context, let exchange = current, exchange.number == number, !exchange.hasReplied, !exchange.isOldClient else { return }
        if head.status == 100 {
            guard exchange.expectsContinue else { return }
            current?.expectsContinue = false
            timer.forgive()
        }
        WholeReply(head: head, framing: .bodiless).writeInterim(context: context, wire: wire)
    }

    /// - Parameter staysOpen: nil when the reply and the connection broke off.
    func finishExchange(_ number: Int, staysOpen: Bool?) {
        guard let context, let exchange = current, exchange.number == number else { return }
        (current, unlogged) = (nil, .unread)
        guard let staysOpen else { return context.close(promise: nil) }
        guard staysOpen, !isDraining, exchange.isRequestEnded, !isInputClosed || !waiting.isEmpty || holdsBytes else {
            return closeAfterReply(context: context)
        }
        enter(.idle, context: context)
        open?.noteIdle(since: .now())
        advance(context: context)
    }

    // MARK: end

    /// Closes the write side and waits briefly for the client to close: an immediate close with unread bytes would reset the connection and
    /// could discard the reply (RFC 9112 §9.6).
    func closeAfterReply(context: ChannelHandlerContext) {
        isLeaving = true
        // It may be closed for another connection meanwhile.
        open?.noteIdle(since: .now())
        waiting.removeAll()
        if wire == .stream { return endStream(context: context) }
        if isInputClosed { return closeOnceFlushed(context: context) }
        enter(context.channel.isWritable ? .lingering : .writing, context: context)
        context.close(mode: .output, promise: nil)
        resumeReading(context: context)
    }

    private func closeOnceFlushed(context: ChannelHandlerContext) {
        let channel = context.channel
        context.writeAndFlush(wrapOutboundOut(.byteBuffer(ByteBuffer()))).whenComplete { _ in channel.close(promise: nil) }
    }

    // MARK: deadline

    func enter(_ phase: ConnectionDeadline.Phase, context: ChannelHandlerContext) {
        timer.enter(phase)
        timer.ensureScheduled(for: self, on: context.eventLoop)
    }

    func timerFired() {
        if let context, timer.isToRest(), IdleConnection(connection: self, channel: context.channel).rests(context: context) { return }
        guard let context, let phase = timer.passedPhase(for: self, on: context.eventLoop) else { return }
        switch phase {
        case .head where !isLeaving:
            refuse(Refusal(status: 408, problem: "bad-request", detail: "the request head took too long"), context: context)
        case .writing where writeProgress.advance(on: context.channel):
            timer.enter(.writing)
            timer.schedule(for: self, on: context.eventLoop)
        // Reading is paused by the proxy, or the body was not requested yet.
        case .body where current?.isBodyPaused == true || current?.expectsContinue == true:
            timer.forgive()
            timer.schedule(for: self, on: context.eventLoop)
        case .body where !isLeaving && current?.isRequestEnded == false && current?.hasReplied == false:
            fail(Refusal(status: 408, problem: "bad-request", detail: "the request body took too long"), context: context)
        default: context.close(promise: nil)
        }
    }
}
