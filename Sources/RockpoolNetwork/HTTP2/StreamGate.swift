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

    private var hasHead = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .headers(var head) = unwrapInboundIn(data), !hasHead else { return context.fireChannelRead(data) }
        hasHead = true
        guard isWellFormed(head.headers) else {
            context.writeAndFlush(wrapOutboundOut(.rstStream(.protocolError)), promise: nil)
            return
        }
        Self.joinCookies(&head.headers)
        // Frames say by themselves that a body follows; the codec would only believe it of some methods.
        if !head.endStream, !head.headers.contains(name: "content-length"),
            Self.seldomWithBody.contains(head.headers.first(name: ":method") ?? "")
        {
            head.headers.add(name: "transfer-encoding", value: "chunked")
        }
        context.fireChannelRead(wrapInboundOut(.headers(head)))
    }

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        guard event is StopSending else { return context.triggerUserOutboundEvent(event, promise: promise) }
        context.writeAndFlush(wrapOutboundOut(.rstStream(.noError)), promise: promise)
    }

    /// One field again of the crumbs that HTTP/2 lets a client make of it: whoever comes after knows no others (RFC 9113 §8.2.3).
    static func joinCookies(_ headers: inout HPACKHeaders) {
        let crumbs = headers["cookie"]
        guard crumbs.count > 1 else { return }
        headers.replaceOrAdd(name: "cookie", value: crumbs.joined(separator: "; "))
    }

    private static let seldomWithBody: Set<String> = ["GET", "HEAD", "DELETE", "TRACE"]

    /// The scheme is that of the connection, Host says nothing else than `:authority`, and TE asks for trailers at most.
    private func isWellFormed(_ head: HPACKHeaders) -> Bool {
        let hosts = head[canonicalForm: "host"]
        let authority = head.first(name: ":authority")
        return head.first(name: ":scheme") == "https" && authority?.isEmpty == false
            && hosts.allSatisfy { $0.lowercased() == authority?.lowercased() } && hosts.count <= 1
            && head[canonicalForm: "te"].allSatisfy { $0.lowercased() == "trailers" }
    }
}

extension HPACKHeaders {
    fileprivate func first(name: String) -> String? { first { $0.name == name }?.value }
}
