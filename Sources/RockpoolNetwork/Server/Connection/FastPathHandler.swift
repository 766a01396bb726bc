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
