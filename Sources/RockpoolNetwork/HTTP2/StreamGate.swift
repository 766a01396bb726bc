// What a stream's head must be beyond what the frame decoder checks, before it is read as a request of HTTP/1 (RFC 9113 §8.2, §8.3).
import NIOCore
import NIOHPACK
import NIOHTTP2

/// The first handler of a stream.
final class StreamGate: ChannelDuplexHandler {
    typealias InboundIn = HTTP2Frame.FramePayload
    typealias InboundOut = HTTP2Frame.FramePayload
    typealias OutboundIn = HTTP2Frame.FramePayload
    typealias OutboundOut = HTTP2Frame.FramePayload

    /// The reply is whole, and nothing more of the request is needed.
    struct StopSending: Sendable {}

    let backlog: StreamBacklog
    /// Bytes of the reply's DATA that the client has not taken.
    var waiting = 0
    /// A head of the reply that is written and not flushed yet: where nothing follows, it ends the stream itself, and an answer to HEAD
    /// has no DATA frame.
    var unsent: (head: HTTP2Frame.FramePayload.Headers, promise: EventLoopPromise<Void>?)?
    private var hasHead = false
    /// Whether the request is whole.
    private var hasEnded = false
    /// A head of which only the next frame tells whether a body follows.
    private var held: HTTP2Frame.FramePayload.Headers?

    init(_ backlog: StreamBacklog) { self.backlog = backlog }

    /// After the request only windows come. They are read at once: kept for a handler that reads nothing more, a million takes 24 MB.
    func channelReadComplete(context: ChannelHandlerContext) {
        context.fireChannelReadComplete()
        if hasEnded { context.read() }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let payload = unwrapInboundIn(data)
        switch payload {
        // The connection has taken it into account.
        case .windowUpdate: return
        case .headers(let head): hasEnded = hasEnded || head.endStream
        case .data(let data): hasEnded = hasEnded || data.endStream
        default: break
        }
        if let held { return decide(held, payload, context) }
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
        // Whoever waits for `100 Continue` has a body, and sends none of it before that.
        if head.headers.contains(name: "expect") { return passWithBody(head, context) }
        held = head
    }

    /// Some clients end a request without a body by an empty frame of their own: it has no body for that (RFC 9113 §8.1).
    private func decide(_ head: HTTP2Frame.FramePayload.Headers, _ next: HTTP2Frame.FramePayload, _ context: ChannelHandlerContext) {
        switch next {
        case .data(let data) where data.data.readableBytes > 0:
            held = nil
            passWithBody(head, context)
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

    /// Frames say by themselves that a body follows; the codec would only believe it of some methods.
    private func passWithBody(_ head: HTTP2Frame.FramePayload.Headers, _ context: ChannelHandlerContext) {
        var head = head
        head.headers.add(name: "transfer-encoding", value: "chunked")
        context.fireChannelRead(wrapInboundOut(.headers(head)))
    }

    func handlerRemoved(context: ChannelHandlerContext) { unsent?.promise?.fail(ChannelError.ioOnClosedChannel) }

    /// One field again of the crumbs that HTTP/2 lets a client make of it: whoever comes after knows no others (RFC 9113 §8.2.3).
    static func joinCookies(_ headers: inout HPACKHeaders) {
        let crumbs = headers["cookie"]
        guard crumbs.count > 1 else { return }
        headers.replaceOrAdd(name: "cookie", value: crumbs.joined(separator: "; "))
    }

    private static let seldomWithBody: Set<String> = ["GET", "HEAD", "DELETE", "TRACE"]

    /// The scheme is that of the connection, Host says nothing else than `:authority`, TE asks for trailers at most, and every value is one.
    private func isWellFormed(_ head: HPACKHeaders) -> Bool {
        guard head.allSatisfy({ Self.isValue($0.value) }) else { return false }
        let hosts = head[canonicalForm: "host"]
        let authority = head.first(name: ":authority")
        return head.first(name: ":scheme") == "https" && authority?.isEmpty == false
            && hosts.allSatisfy { $0.lowercased() == authority?.lowercased() } && hosts.count <= 1
            && head[canonicalForm: "te"].allSatisfy { $0.lowercased() == "trailers" }
    }

    /// Whether a value holds no control character but tabs, and begins and ends with neither space nor tab (RFC 9113 §8.2.1, RFC 9110 §5.5).
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
