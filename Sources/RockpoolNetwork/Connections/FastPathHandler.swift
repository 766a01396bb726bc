// Immediate answers from hot responses to plain requests, before decoding and without a thread hop (docs/architecture.md#parts).
import Logging
import NIOCore
import RockpoolCore
import RockpoolEngine

/// Precedes the decoder, and acts only between two requests.
final class FastPathHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundOut = IOData

    let connection: ConnectionHandler
    let engine: Engine
    private let limits: ClientLimits
    let listener: String
    let keepsPath: Bool
    private let isOn: Bool
    /// True if the decoder is empty: the next byte it gets begins a request.
    private var isBetweenRequests = true
    /// The progress in the current chunked body.
    private var chunks: ChunkMeter?
    /// Bytes still to come of the current body with a length; nil before its first one.
    private var contentLeft: Int64?
    /// Bytes of `CRLF CRLF` matched so far.
    private var blankLine = 0
    var lastCredential = LastCredential()
    private(set) lazy var address = context?.channel.remoteAddress?.ipAddress ?? ""
    private let recent: RecentMessages
    let pool: RelayPool
    private(set) var context: ChannelHandlerContext?
    /// The exchange that a relay answers now.
    var relayed: RelayedRequest?
    /// Bytes that were received while it runs.
    var held = ByteBuffer()
    /// A write that is to be relayed, without the end of its body.
    var partial: (bytes: ByteBuffer, limit: Scheduled<Void>)?
    /// The end of the time for the body of that write; nil before its first part.
    var partialEnd: NIODeadline?
    /// Bytes of a plain write's body that the decoder is still to receive; nil if that is not known.
    private var bodyLeft: Int?
    /// True if the client has closed its side meanwhile.
    var isInputEndHeld = false

    init(_ connection: ConnectionHandler, on loop: any EventLoop) {
        self.connection = connection
        recent = connection.service.engine.fastPath.recentMessages(of: loop)
        pool = connection.service.relays.pool(of: loop)
        engine = connection.service.engine
        limits = connection.service.limits
        listener = connection.service.resolution.listener
        keepsPath = connection.service.resolution.keepsPath
        isOn = connection.service.answersAtOnce
    }

    /// True if neither this handler nor the decoder keeps bytes of the client.
    var isEmpty: Bool { isBetweenRequests && relayed == nil && partial == nil && held.readableBytes == 0 }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        guard relayed != nil else {
            guard var whole = takePartial() else { return receive(bytes, context: context) }
            whole.writeBuffer(&bytes)
            return receive(whole, context: context)
        }
        held.writeBuffer(&bytes)
        connection.holdsBytes = true
    }

    func channelInactive(context: ChannelHandlerContext) {
        relayed?.exchange.cancel()
        relayed = nil
        _ = takePartial()
        context.fireChannelInactive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // The rest of a body may not come any more.
        decodePartial()
        if relayed != nil, let event = event as? ChannelEvent, event == .inputClosed {
            isInputEndHeld = true
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        context.fireChannelWritabilityChanged()
        guard context.channel.isWritable, let relayed else { return }
        if relayed.isComplete { end(relayed, isComplete: true) } else { relayed.exchange.resume() }
    }

    func receive(_ received: ByteBuffer, context: ChannelHandlerContext) {
        var bytes = received
        var plain: PlainCopy?
        var endsWithBody = false
        if isBetweenRequests, isOn {
            let before = bytes.readableBytes
            var unanswered: FastPathRequest?
            while bytes.readableBytes > 0, connection.mayAnswerAtOnce(context: context) {
                guard let request = FastPathRequest(bytes.readableBytesUInt8Span, limits: limits) else { break }
                guard let reply = reply(to: request, in: bytes) else {
                    unanswered = request
                    break
                }
                bytes.moveReaderIndex(forwardBy: request.length)
                connection.answeredAtOnce()
                context.write(wrapOutboundOut(.byteBuffer(reply.bytes)), promise: nil)
                if let body = reply.body { context.write(wrapOutboundOut(.byteBuffer(body)), promise: nil) }
            }
            if bytes.readableBytes < before {
                context.flush()
                connection.isIdleAgain(context: context)
                if bytes.readableBytes == 0 { return }
            }
            if let unanswered {
                if beginsRelay(of: unanswered, in: bytes, context: context) { return }
                plain = PlainCopy(unanswered, in: bytes, listener: listener, keepsPath: keepsPath, last: &lastCredential)
            } else if let write = PlainWrite(bytes.readableBytesUInt8Span, limits: limits) {
                if beginsRelay(of: write, in: bytes, context: context) { return }
                connection.arrivingWrite = PlainWriteCopy(write, in: bytes, listener: listener)
                endsWithBody = write.length == bytes.readableBytes
                bodyLeft = write.length > bytes.readableBytes ? write.length - bytes.readableBytes : nil
            }
        } else if let left = bodyLeft {
            endsWithBody = left == bytes.readableBytes
            bodyLeft = left > bytes.readableBytes ? left - bytes.readableBytes : nil
        }
        decode(bytes, after: plain, endsWithBody: endsWithBody, context: context)
    }

    /// - Parameter endsWithBody: true if a request ends with its body where the bytes end.
    func decode(_ bytes: ByteBuffer, after plain: PlainCopy?, endsWithBody: Bool, context: ChannelHandlerContext) {
        // If a request ends together with the bytes, and in a blank line or a known body, the decoder is empty. After any other end it may
        // hold the beginning of a head or a body, and the next bytes are not a new request.
        partialEnd = nil
        let isWhole = endsWithBody || bytes.readableBytesView.suffix(4).elementsEqual("\r\n\r\n".utf8)
        isBetweenRequests = connection.decode(after: plain) { pass(bytes, context: context) } && isWhole
    }

    /// Passes bytes to the decoder, each head separately, because only then the framing of its body is known.
    private func pass(_ bytes: ByteBuffer, context: ChannelHandlerContext) {
        var rest = bytes
        while rest.readableBytes > 0 {
            switch connection.framingUnderWay {
            case .length(let length):
                let left = contentLeft ?? length
                let count = Int(min(left, Int64(rest.readableBytes)))
                contentLeft = left > count ? left - Int64(count) : nil
                guard let slice = rest.readSlice(length: count) else { return }
                context.fireChannelRead(wrapInboundOut(slice))
            case .chunked:
                var meter = chunks ?? ChunkMeter()
                do throws(Refusal) {
                    let count = try meter.read(rest.readableBytesUInt8Span)
                    chunks = meter.isEnded ? nil : meter
                    guard let slice = rest.readSlice(length: count) else { return }
                    context.fireChannelRead(wrapInboundOut(slice))
                } catch {
                    return connection.refuseBody(error)
                }
            case .none:
                (chunks, contentLeft) = (nil, nil)
                // Bytes after CONNECT or an upgrade are not a head.
                guard connection.readsHeads else { return context.fireChannelRead(wrapInboundOut(rest)) }
                guard let slice = rest.readSlice(length: headLength(in: rest)) else { return }
                context.fireChannelRead(wrapInboundOut(ObsText.encoded(slice)))
            }
        }
    }

    /// Returns the number of bytes through the first blank line, or of all.
    private func headLength(in bytes: ByteBuffer) -> Int {
        let span = bytes.readableBytesUInt8Span
        for index in span.indices {
            let byte = span[index]
            let isExpected = byte == (blankLine % 2 == 0 ? 0x0D : 0x0A)
            blankLine = isExpected ? blankLine + 1 : byte == 0x0D ? 1 : 0
            if blankLine == 4 {
                blankLine = 0
                return index + 1
            }
        }
        return span.count
    }

    /// Returns the reply to the request at the start of `bytes`; nil if it is not ready.
    private func reply(to request: FastPathRequest, in bytes: ByteBuffer) -> ReadyReply? {
        engine.fastPath.hotReply(to: request, in: bytes, at: listener, from: address, last: &lastCredential, recent: recent) {
            head, length in
            var buffer = ByteBuffer()
            buffer.reserveCapacity(.kib(1))
            let framing = length.map { ReplyFraming.length(Int64($0)) } ?? .bodiless
            HeadSerializer.write(head, framing: framing, connection: nil, into: &buffer)
            return SerialisedHead(bytes: buffer)
        }
    }
}

/// Relayed exchanges in their connection's order (docs/architecture.md#relays).
extension FastPathHandler {
    /// Sends a plain request by a relay, if there is one and a connection for it.
    func beginsRelay(of request: FastPathRequest, in bytes: ByteBuffer, context: ChannelHandlerContext) -> Bool {
        guard connection.mayAnswerAtOnce(context: context), request.length == bytes.readableBytes,
            let relay = engine.relays.relay(
                for: request, in: bytes, at: listener, from: address, keepsPath: keepsPath,
                isLocalClient: connection.isClientLocal(context.channel), last: &lastCredential),
            let way = pool.take(to: RelayDestination(relay.basis.request), timeout: relay.basis.request.timeouts.connect)
        else { return false }
        // The full path refuses it.
        guard let place = free(), relay.read?.begin() != false else {
            pool.takeBack(way, isUsed: false)
            return false
        }
        begin(relay, on: way, of: .read(request), at: place, in: bytes, context: context)
        return true
    }

    /// Sends a plain write by a relay, if there is one and a connection for it; or waits for the rest of its body.
    func beginsRelay(of write: PlainWrite, in bytes: ByteBuffer, context: ChannelHandlerContext) -> Bool {
        guard keepsPath, connection.mayAnswerAtOnce(context: context) else { return false }
        if write.length > bytes.readableBytes {
            guard
                engine.relays.expects(
                    write, in: bytes, at: listener, isLocalClient: connection.isClientLocal(context.channel))
            else { return false }
            let me = NIOLoopBound(self, eventLoop: context.eventLoop)
            let end = partialEnd ?? .now() + Self.patience
            partialEnd = end
            partial = (bytes, context.eventLoop.scheduleTask(deadline: end) { me.value.decodePartial() })
            return true
        }
        guard write.length == bytes.readableBytes, let place = free(),
            let relay = engine.relays.relay(
                of: write, in: bytes, at: listener, from: address, isLocalClient: connection.isClientLocal(context.channel)),
            let sent = relay.write,
            let way = pool.take(
                to: RelayDestination(relay.basis.request), idleAtMost: sent.isRepeatable ? nil : RelayedWrite.quiet,
                timeout: sent.isRepeatable || sent.isFollowing ? relay.basis.request.timeouts.connect : nil)
        else { return false }
        begin(relay, on: way, of: .write(write), at: place, in: bytes, context: context)
        return true
    }

    /// The place of an exchange; nil if its client has as much under way as it may.
    private func free() -> ExchangePlace?? {
        do throws(Refusal) { return .some(try connection.place(.request)) } catch { return nil }
    }

    /// The time after which a slow body takes the full path, where its rate is watched.
    private static let patience = TimeAmount.milliseconds(200)

    func takePartial() -> ByteBuffer? {
        guard let (bytes, limit) = partial else { return nil }
        partial = nil
        limit.cancel()
        return bytes
    }

    /// Lets a write take the full path, because the rest of its body may not come.
    func decodePartial() {
        guard let context, let bytes = takePartial() else { return }
        decode(bytes, after: nil, endsWithBody: false, context: context)
    }

    private func begin(
        _ relay: Relay, on way: RelayConnection, of request: RelayedRequest.Form, at place: ExchangePlace?, in bytes: ByteBuffer,
        context: ChannelHandlerContext
    ) {
        partialEnd = nil
        connection.requests += 1
        connection.current = CurrentExchange(relayed: connection.requests, place: place)
        connection.enter(.answering, context: context)
        let exchange = RelayedExchange(relay, on: way, for: self, relays: engine.relays, executor: pool.executor)
        relayed = RelayedRequest(number: connection.requests, bytes: bytes, form: request, exchange: exchange)
        exchange.start()
    }

    func end(_ relayed: RelayedRequest, isComplete: Bool) {
        self.relayed = nil
        connection.finishExchange(relayed.number, staysOpen: isComplete ? true : nil)
        receiveHeld()
    }

    /// Processes what was received while a relay answered.
    private func receiveHeld() {
        guard let context else { return }
        if held.readableBytes > 0 {
            let bytes = held
            held = ByteBuffer()
            connection.holdsBytes = false
            receive(bytes, context: context)
        }
        // The decoder gets nothing after the end of the input: what was held is before it.
        guard relayed == nil, isInputEndHeld else { return }
        isInputEndHeld = false
        context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    }
}

/// The request that a relay answers.
struct RelayedRequest {
    enum Form {
        case read(FastPathRequest)
        case write(PlainWrite)
    }

    let number: Int
    let bytes: ByteBuffer
    let form: Form
    let exchange: RelayedExchange
    /// True if the reply is complete, and waits for the client to take it.
    var isComplete = false
}

extension FastPathHandler: RelayClient {
    var takesMore: Bool { context?.channel.isWritable ?? false }

    func send(_ bytes: ByteBuffer) {
        guard let context else { return }
        context.writeAndFlush(wrapOutboundOut(.byteBuffer(bytes)), promise: nil)
    }

    func relayEnded(isComplete: Bool) {
        guard let relayed else { return }
        if isComplete, !takesMore { self.relayed?.isComplete = true } else { end(relayed, isComplete: isComplete) }
    }

    func sendInterim(_ head: ResponseHead) {
        // Nobody has asked for 100 (RFC 9110 §10.1.1).
        guard let context, head.status != 100 else { return }
        WholeReply(head: head, framing: .bodiless).writeInterim(context: context, wire: .plain)
    }

    func handOver(_ outcome: RelayOutcome) {
        guard let relayed, let context else { return }
        let early = EarlyAnswer(to: relayed.exchange.relay, outcome)
        self.relayed = nil
        connection.requests -= 1
        (connection.kept, connection.current) = (connection.current?.place, nil)
        connection.timer.enter(.idle)
        (connection.early, connection.wasLost) = (early, early.isTaken)
        switch relayed.form {
        case .read(let request):
            let plain = PlainCopy(request, in: relayed.bytes, listener: listener, keepsPath: keepsPath, last: &lastCredential)
            decode(relayed.bytes, after: plain, endsWithBody: false, context: context)
        case .write(let write):
            connection.arrivingWrite = PlainWriteCopy(write, in: relayed.bytes, listener: listener)
            decode(relayed.bytes, after: nil, endsWithBody: true, context: context)
        }
        receiveHeld()
    }
}
