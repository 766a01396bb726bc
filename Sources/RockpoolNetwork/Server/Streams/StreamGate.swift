// Validation of a stream's head beyond the frame decoder's checks, before it is parsed as an HTTP/1 request (RFC 9113 §8.2, §8.3).
import NIOCore
import NIOHPACK
import NIOHTTP2
import RockpoolCore

/// The first handler of a stream.
final class StreamGate: ChannelDuplexHandler {
    typealias InboundIn = HTTP2Frame.FramePayload
    typealias InboundOut = HTTP2Frame.FramePayload
    typealias OutboundIn = HTTP2Frame.FramePayload
    typealias OutboundOut = HTTP2Frame.FramePayload

    /// Outbound event: the reply is complete, and the rest of the request is not needed.
    struct StopSending: Sendable {}

    let backlog: StreamBacklog
    /// Called with the number of body bytes that were passed on.
    private let delivered: (Int, HTTP2StreamID) -> Void
    private let scheme: OriginAddress.Scheme
    /// Bytes of the reply's DATA that the client has not received.
    var waiting = 0
    /// A written but unflushed reply head: if nothing follows, it ends the stream itself, so that an answer to HEAD has no DATA frame.
    var unsent: (head: HTTP2Frame.FramePayload.Headers, promise: EventLoopPromise<Void>?)?
    private var hasHead = false
    /// True if the request is complete.
    private var hasEnded = false
    /// A request head that is held until the next frame shows whether a body follows.
    private var held: HTTP2Frame.FramePayload.Headers?

    /// - Parameters:
    ///   - scheme: the scheme of the connection.
    ///   - delivered: called with the number of body bytes that were passed on.
    init(_ backlog: StreamBacklog, scheme: OriginAddress.Scheme, delivered: @escaping (Int, HTTP2StreamID) -> Void = { _, _ in }) {
        (self.backlog, self.scheme, self.delivered) = (backlog, scheme, delivered)
    }

    /// After the request only WINDOW_UPDATE frames arrive. They are read at once: queued for a handler that reads no more, a million of
    /// them occupies 24 MB.
    func channelReadComplete(context: ChannelHandlerContext) {
        context.fireChannelReadComplete()
        if hasEnded { context.read() }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let payload = unwrapInboundIn(data)
        switch payload {
        // The connection's flow control has processed it.
        case .windowUpdate: return
        case .headers(let head): hasEnded = hasEnded || head.endStream
        case .data(let data):
            hasEnded = hasEnded || data.endStream
            if let stream = try? context.channel.syncOptions?.getOption(HTTP2StreamChannelOptions.streamID) {
                delivered(data.data.readableBytes, stream)
            }
        default: break
        }
        if let held { return decide(held, next: payload, context: context) }
        guard case .headers(var head) = payload, !hasHead else { return context.fireChannelRead(data) }
        hasHead = true
        guard isWellFormed(head.headers) else {
            context.writeAndFlush(wrapOutboundOut(.rstStream(.protocolError)), promise: nil)
            return
        }
        Self.joinCookies(&head.headers)
        guard !head.endStream, !head.headers.contains(name: "content-length"),
            Self.seldomWithBody.contains(head.headers.first(name: ":method") ?? "")
        else { return context.fireChannelRead(wrapInboundOut(.headers(head))) }
        // A request with `Expect: 100-continue` has a body, but the client sends none of it before the 100.
        if head.headers.contains(name: "expect") { return passWithBody(head, context: context) }
        held = head
    }

    /// Some clients end a request without a body with an empty DATA frame: such a request has no body (RFC 9113 §8.1).
    private func decide(_ head: HTTP2Frame.FramePayload.Headers, next: HTTP2Frame.FramePayload, context: ChannelHandlerContext) {
        switch next {
        case .data(let data) where data.data.readableBytes > 0:
            held = nil
            passWithBody(head, context: context)
            context.fireChannelRead(wrapInboundOut(next))
        case .data(let data) where !data.endStream: break
        case .data, .headers:
            held = nil
            var whole = head
            whole.endStream = true
            context.fireChannelRead(wrapInboundOut(.headers(whole)))
        default: context.fireChannelRead(wrapInboundOut(next))
        }
    }

    /// Marks the request as having a body, because the codec assumes one only for some methods.
    private func passWithBody(_ head: HTTP2Frame.FramePayload.Headers, context: ChannelHandlerContext) {
        var head = head
        head.headers.add(name: "transfer-encoding", value: "chunked")
        context.fireChannelRead(wrapInboundOut(.headers(head)))
    }

    func handlerRemoved(context: ChannelHandlerContext) { unsent?.promise?.fail(ChannelError.ioOnClosedChannel) }

    /// Joins the cookie crumbs that HTTP/2 permits into one field, because all later code expects a single one (RFC 9113 §8.2.3).
    static func joinCookies(_ headers: inout HPACKHeaders) {
        let crumbs = headers["cookie"]
        guard crumbs.count > 1 else { return }
        headers.replaceOrAdd(name: "cookie", value: crumbs.joined(separator: "; "))
    }

    private static let seldomWithBody: Set<String> = ["GET", "HEAD", "DELETE", "TRACE"]

    /// True if `:scheme` matches the connection, Host equals `:authority`, TE is at most `trailers`, and every value is valid.
    private func isWellFormed(_ head: HPACKHeaders) -> Bool {
        guard head.allSatisfy({ Self.isValue($0.value) }) else { return false }
        let hosts = head[canonicalForm: "host"]
        let authority = head.first(name: ":authority")
        return head.first(name: ":scheme") == scheme.rawValue && authority?.isEmpty == false
            && hosts.allSatisfy { $0.lowercased() == authority?.lowercased() } && hosts.count <= 1
            && head[canonicalForm: "te"].allSatisfy { $0.lowercased() == "trailers" }
    }

    /// True if a value has no control character except tabs, and no leading or trailing space or tab (RFC 9113 §8.2.1, RFC 9110 §5.5).
    private static func isValue(_ value: String) -> Bool {
        let bytes = value.utf8
        guard let first = bytes.first, let last = bytes.last else { return true }
        let isTrimmed = first != 0x20 && first != 0x09 && last != 0x20 && last != 0x09
        return isTrimmed && bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
    }
}

extension HPACKHeaders {
    fileprivate func first(name: String) -> String? { first { $0.name == name }?.value }
}
