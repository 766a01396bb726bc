// The upstream side of an upgrade until the head of its answer: 101 makes a tunnel, any other answer is forwarded (RFC 9110 §7.8).
import HTTPTypes
import NIOCore
import RockpoolCore

/// The origin's answer to an upgrade request.
struct UpgradeAnswer {
    let head: ResponseHead
    let framing: ReplyFraming
    let channel: any Channel
    /// Bytes that arrived with the head.
    let early: ByteBuffer

    var isSwitching: Bool { head.status == 101 }

    /// Writes the head for the client; a 101 keeps its `Upgrade` field, and the body follows in the origin's framing.
    func write(into buffer: inout ByteBuffer) {
        var head = head
        let upgrade = head.fields[.upgrade]
        head.fields = HopByHop.stripped(answer: head.fields)
        if isSwitching { head.fields[.upgrade] = upgrade }
        HeadSerializer.write(head, framing: framing, connection: isSwitching ? "Upgrade" : "close", into: &buffer)
        buffer.writeImmutableBuffer(early)
    }
}

/// Parses the answer's head as strictly as any other, then leaves the pipeline.
final class UpgradeHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private var promise: EventLoopPromise<UpgradeAnswer>?
    private var heads = ResponseHeads(method: "GET", allowsUpgrade: true)
    private var received = ByteBuffer()

    private let limit: TimeSpan
    private var timer: Scheduled<Void>?

    /// - Parameter limit: the time limit for the answer's head.
    init(_ promise: EventLoopPromise<UpgradeAnswer>, within limit: TimeSpan) {
        self.promise = promise
        self.limit = limit
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let me = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        timer = context.eventLoop.scheduleTask(in: .milliseconds(limit.milliseconds)) {
            let (handler, context) = me.value
            handler.fail(TransferFailure(kind: .firstByteTimeout, sent: .yes, detail: "no answer to the upgrade"), context: context)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }

    /// Returns the request as it is sent upstream, with the hop-by-hop fields of the upgrade.
    static func serialize(_ request: RequestHead, upgrade original: HTTPFields) -> ByteBuffer {
        var buffer = ByteBuffer()
        buffer.writeString("\(request.method.rawValue) \(request.target) HTTP/1.1\r\nHost: \(request.origin.authority)\r\n")
        for field in request.fields {
            buffer.writeString("\(field.name.rawName): ")
            buffer.writeBytes(field.valueBytes)
            buffer.writeStaticString("\r\n")
        }
        buffer.writeString("Upgrade: \(original[.upgrade] ?? "websocket")\r\nConnection: Upgrade\r\n\r\n")
        return buffer
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        received.writeBuffer(&bytes)
        do {
            while let end = received.readableBytesView.firstIndex(of: 10), let line = received.readBytes(end: end) {
                if case .final(let head, let length, _) = try heads.receive(line) { return finish(head, length: length, context: context) }
            }
            if received.readableBytes > Int(ResponseHeads.headLimit.bytes) {
                throw Refusal.badGateway("head too large")
            }
        } catch {
            fail(TransferFailure(kind: .protocolError, sent: .yes, detail: (error as? Refusal)?.detail ?? "\(error)"), context: context)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if promise != nil { context.read() }
    }

    func channelInactive(context: ChannelHandlerContext) {
        fail(TransferFailure(kind: .reset, sent: .maybe, detail: "closed before it answered the upgrade"), context: context)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // With half-closure allowed, this is the only event when an origin closes.
        if let event = event as? ChannelEvent, event == .inputClosed { return channelInactive(context: context) }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { fail(error, context: context) }

    private func finish(_ head: ResponseHead, length: Int64?, context: ChannelHandlerContext) {
        let isChunked = head.fields.contains(.transferEncoding)
        let framing: ReplyFraming = head.status == 101 ? .bodiless : length.map { .length($0) } ?? (isChunked ? .chunked : .untilClose)
        let answer = UpgradeAnswer(head: head, framing: framing, channel: context.channel, early: received)
        context.pipeline.syncOperations.removeHandler(self, promise: nil)
        promise?.succeed(answer)
        promise = nil
    }

    private func fail(_ error: any Error, context: ChannelHandlerContext) {
        promise?.fail(error)
        promise = nil
        context.close(promise: nil)
    }
}

extension ByteBuffer {
    /// Reads the bytes up to and including index `end` of the readable view.
    fileprivate mutating func readBytes(end: Int) -> [UInt8]? { readBytes(length: end - readerIndex + 1) }
}
