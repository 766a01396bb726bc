// Immediate answers from hot responses to plain requests over HTTP/2, before a stream gets a channel of its own (docs/architecture.md#parts
// *memory tier*; RFC 9113 §8.1, §8.3).
import HTTPTypes
import NIOCore
import NIOHPACK
import NIOHTTP2
import RockpoolCore
import RockpoolEngine

/// Stands between the frames and the streams. Streams that it answers are unknown to the handlers behind it.
final class HTTP2FastPathHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTP2Frame
    typealias InboundOut = HTTP2Frame
    typealias OutboundIn = HTTP2Frame
    typealias OutboundOut = HTTP2Frame

    /// Largest body in bytes that is sent from here: the default window of a stream (RFC 9113 §6.9.2), so that few answers wait for the client.
    private static let bodyLimit = 65_535
    /// The longest time for which the end of the connection waits for the client to take what was answered.
    private static let closeLimit = TimeAmount.seconds(5)
    /// Largest number of answers that wait for the client's window.
    private static let waitingLimit = 16

    private let service: ConnectionService
    private let isOn: Bool
    private let count: StreamCount
    private let scheme: String
    private let listener: String
    /// The request of the next stream that gets a channel, if it is a plain one.
    private var arriving: PlainCopy?
    /// Answered streams that are not closed.
    private var answered: Set<HTTP2StreamID> = []
    private var lastCredential = LastCredential()
    /// The client's IP address; nil before the first request.
    private var address: String?
    private let recent: RecentMessages
    /// The request as an HTTP/1.1 head, which is the form in which replies are found.
    private var request = ByteBuffer()
    private var hasUnflushed = false
    /// The end of the connection, which waits for answers that are not sent whole.
    private var closing: (promise: EventLoopPromise<Void>?, limit: Scheduled<Void>)?

    init(service: ConnectionService, count: StreamCount, scheme: OriginAddress.Scheme, on loop: any EventLoop) {
        recent = service.engine.fastPath.recentMessages(of: loop)
        (self.service, self.count, self.scheme) = (service, count, scheme.rawValue)
        isOn = service.answersAtOnce
        listener = "h2 " + service.resolution.listener
    }

    /// Returns the request of the stream that is being created; nil if it is not a plain one.
    func takeArriving() -> PlainCopy? {
        defer { arriving = nil }
        return arriving
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        // Only WINDOW_UPDATE and RST_STREAM can follow, which the frame handler has processed.
        if answered.contains(frame.streamID) { return }
        arriving = nil
        if case .headers(let head) = frame.payload, head.endStream, isOn, count.mayAnswer(on: context.channel),
            answered.count < Self.waitingLimit, answer(head.headers, on: frame.streamID, context: context)
        {
            return
        }
        if case .headers = frame.payload, !count.admits(frame.streamID) { return refuse(frame.streamID, context: context) }
        context.fireChannelRead(data)
    }

    /// Resets a stream of which nothing was processed: its client may send the request again (RFC 9113 §8.7).
    private func refuse(_ stream: HTTP2StreamID, context: ChannelHandlerContext) {
        arriving = nil
        answered.insert(stream)
        hasUnflushed = true
        context.write(wrapOutboundOut(HTTP2Frame(streamID: stream, payload: .rstStream(.refusedStream))), promise: nil)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if hasUnflushed {
            hasUnflushed = false
            count.answeredAtOnce()
            context.flush()
        }
        context.fireChannelReadComplete()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case let event as NIOHTTP2StreamCreatedEvent where answered.contains(event.streamID): return
        case let event as StreamClosedEvent where answered.remove(event.streamID) != nil:
            if answered.isEmpty { finish(context: context) }
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    /// The handlers behind do not know the streams that are answered here, and would close the connection before them.
    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard mode == .all, !answered.isEmpty, closing == nil, !count.hasGivenUp, context.channel.isActive else {
            return context.close(mode: mode, promise: promise)
        }
        let me = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        closing = (promise, context.eventLoop.scheduleTask(in: Self.closeLimit) { me.value.0.finish(context: me.value.1) })
    }

    private func finish(context: ChannelHandlerContext) {
        guard let (promise, limit) = closing else { return }
        limit.cancel()
        closing = nil
        answered = []
        context.close(mode: .all, promise: promise)
    }

    func channelInactive(context: ChannelHandlerContext) {
        finish(context: context)
        context.fireChannelInactive()
    }

    /// Answers a request if its reply is ready; otherwise keeps the request for its stream.
    private func answer(_ head: HPACKHeaders, on stream: HTTP2StreamID, context: ChannelHandlerContext) -> Bool {
        guard write(head), let plain = FastPathRequest(request.readableBytesUInt8Span, limits: service.limits) else { return false }
        let address = address ?? context.channel.remoteAddress?.ipAddress ?? ""
        self.address = address
        let ready = service.engine.fastPath.hotReply(
            to: plain, in: request, at: listener, from: address, last: &lastCredential, recent: recent
        ) {
            head, length in
            SerialisedHead(fields: Self.fields(of: head, length: length))
        }
        guard let ready, let fields = ready.fields as? HPACKHeaders, ready.body?.readableBytes ?? 0 <= Self.bodyLimit else {
            arriving = PlainCopy(plain, in: request, listener: listener, last: &lastCredential)
            return false
        }
        answered.insert(stream)
        count.answeredOne()
        hasUnflushed = true
        let body = ready.body.flatMap { $0.readableBytes > 0 ? $0 : nil }
        context.write(
            wrapOutboundOut(HTTP2Frame(streamID: stream, payload: .headers(.init(headers: fields, endStream: body == nil)))), promise: nil)
        if let body {
            context.write(
                wrapOutboundOut(HTTP2Frame(streamID: stream, payload: .data(.init(data: .byteBuffer(body), endStream: true)))),
                promise: count.receipt(on: context.eventLoop))
        }
        return true
    }

    /// Writes a request's head in the form of HTTP/1.1; false if it has not the four pseudo-header fields of this connection.
    private func write(_ head: HPACKHeaders) -> Bool {
        var (method, path, authority, isOurs) = ("", "", "", false)
        for (name, value, _) in head {
            guard name.utf8.first == UInt8(ascii: ":") else { break }
            switch name {
            case ":method": method = value
            case ":path": path = value
            case ":authority": authority = value
            case ":scheme": isOurs = value == scheme
            default: return false
            }
        }
        guard isOurs, method == "GET" || method == "HEAD", path.utf8.first == UInt8(ascii: "/"), !authority.isEmpty,
            !path.utf8.contains(0x0A), !authority.utf8.contains(0x0A)
        else { return false }
        request.clear()
        for part in [method, " ", path, " HTTP/1.1\r\nhost: ", authority, "\r\n"] { request.writeString(part) }
        for (name, value, _) in head where name.utf8.first != UInt8(ascii: ":") {
            // The full path compares `host` with `:authority`, and refuses control characters.
            if name == "host" || value.utf8.contains(0x0A) { return false }
            for part in [name, ": ", value, "\r\n"] { request.writeString(part) }
        }
        request.writeStaticString("\r\n")
        return true
    }

    private static func fields(of head: ResponseHead, length: Int?) -> HPACKHeaders {
        var fields = HPACKHeaders()
        fields.reserveCapacity(head.fields.count + 2)
        fields.add(name: ":status", value: String(head.status))
        for field in head.fields where field.name != .contentLength && field.name != .transferEncoding && field.name != .connection {
            fields.add(name: field.name.canonicalName, value: field.value)
        }
        if let length { fields.add(name: "content-length", value: String(length)) }
        return fields
    }
}
