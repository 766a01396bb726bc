// One HTTP/2 stream: its head is validated beyond the frame decoder's checks (RFC 9113 §8.2, §8.3), and the unsent bytes of its reply are
// counted.
import NIOCore
import NIOHPACK
import NIOHTTP2
import RockpoolCore
import RockpoolEngine
import Synchronization

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

/// The reply of a stream: a reply without a body ends with its HEADERS frame, and DATA is counted until the client has received it.
extension StreamGate {
    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let payload = unwrapOutboundIn(data)
        if let reply = unsent, case .data(let end) = payload, end.endStream, end.data.readableBytes == 0 {
            unsent = nil
            var (head, both) = reply
            head.endStream = true
            both.setOrCascade(to: promise)
            return context.write(wrapOutboundOut(.headers(head)), promise: both)
        }
        sendHead(context: context)
        switch payload {
        case .headers(let head) where !head.endStream: unsent = (head, promise)
        case .data(let body) where body.data.readableBytes > 0: send(body, promise: promise, context: context)
        default: context.write(data, promise: promise)
        }
    }

    func flush(context: ChannelHandlerContext) {
        sendHead(context: context)
        context.flush()
    }

    private func sendHead(context: ChannelHandlerContext) {
        guard let (head, promise) = unsent else { return }
        unsent = nil
        context.write(wrapOutboundOut(.headers(head)), promise: promise)
    }

    /// Writes a piece of the body frame by frame, so that progress is known per frame.
    private func send(_ body: HTTP2Frame.FramePayload.Data, promise: EventLoopPromise<Void>?, context: ChannelHandlerContext) {
        let count = body.data.readableBytes
        backlog.add(count, to: waiting)
        waiting += count
        guard case .byteBuffer(var rest) = body.data else {
            return context.write(wrapOutboundOut(.data(body)), promise: counting(count, promise: promise, context: context))
        }
        while rest.readableBytes > UnsentBytes.frame, let piece = rest.readSlice(length: UnsentBytes.frame) {
            let frame = HTTP2Frame.FramePayload.Data(data: .byteBuffer(piece))
            context.write(wrapOutboundOut(.data(frame)), promise: counting(UnsentBytes.frame, promise: nil, context: context))
        }
        let last = HTTP2Frame.FramePayload.Data(data: .byteBuffer(rest), endStream: body.endStream)
        context.write(wrapOutboundOut(.data(last)), promise: counting(rest.readableBytes, promise: promise, context: context))
    }

    /// Returns a promise, the writer's if there is one, that counts `count` bytes as received when it completes.
    private func counting(
        _ count: Int, promise: EventLoopPromise<Void>?, context: ChannelHandlerContext
    ) -> EventLoopPromise<Void> {
        let written = promise ?? context.eventLoop.makePromise(of: Void.self)
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        written.futureResult.whenComplete { result in me.value.settle(count, result: result) }
        return written
    }

    /// `count` bytes were written to the client's socket, or discarded.
    private func settle(_ count: Int, result: Result<Void, any Error>) {
        waiting -= count
        switch result {
        case .success: backlog.take(count, leaving: waiting)
        case .failure: backlog.drop(count, leaving: waiting)
        }
    }

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        guard event is StopSending else { return context.triggerUserOutboundEvent(event, promise: promise) }
        context.writeAndFlush(wrapOutboundOut(.rstStream(.noError)), promise: promise)
    }
}

/// The unsent bytes of all streams of one connection (RFC 9113 §5.2; docs/security-model.md#stalled-readers): DATA that waits for the
/// client's flow-control window, or for its socket.
struct UnsentBytes {
    /// The budget in bytes that the streams of one connection share for pieces of files; above it, pieces have the smallest size.
    static let limit = Int.mib(2)
    /// Bytes of the first piece of a file, before the client has received any: the whole cost of a stream without a window.
    static let least = Int.kib(4)
    /// Bytes of a frame (RFC 9113 §6.5.2, SETTINGS_MAX_FRAME_SIZE): the share of each stream where there are many.
    static let frame = Int.kib(16)
    /// Bytes of the largest piece.
    static let most = Int.kib(64)

    /// The longest time a client may receive nothing.
    let patience: TimeAmount
    /// Unsent bytes of all streams.
    private(set) var bytes = 0
    /// The number of open streams.
    private(set) var streams = 0
    /// The number of streams with unsent bytes.
    private(set) var blocked = 0
    /// The time when the client last received data, or when the first stream began to wait.
    private var takenAt = NIODeadline.distantPast

    init(patience: TimeAmount) { self.patience = patience }

    mutating func open() { streams += 1 }

    mutating func close() { streams -= 1 }

    /// Adds `count` bytes to send on a stream.
    /// - Parameter before: the stream's unsent bytes before this call.
    mutating func add(_ count: Int, to before: Int, now: NIODeadline) {
        bytes += count
        guard before == 0 else { return }
        if blocked == 0 { takenAt = now }
        blocked += 1
    }

    /// Records that the client has received `count` bytes of a stream.
    /// - Parameter rest: the stream's unsent bytes after this call.
    mutating func take(_ count: Int, leaving rest: Int, now: NIODeadline) {
        drop(count, leaving: rest)
        received(now: now)
    }

    /// Records that the client has received something that was not counted here: a reply that was sent whole.
    mutating func received(now: NIODeadline) { takenAt = now }

    /// Discards `count` bytes of a stream that will never be sent: the stream was reset, or the connection has ended.
    mutating func drop(_ count: Int, leaving rest: Int) {
        bytes -= count
        if rest == 0 { blocked -= 1 }
    }

    /// True if every open stream has unsent bytes and the client has received nothing on any for `patience`. A new stream does not reset
    /// the time.
    func isStuck(at now: NIODeadline) -> Bool { blocked > 0 && blocked >= streams && now >= takenAt + patience }

    /// Returns the size of the next piece of a file. A piece is at most as large as the part that the client has already received, so that
    /// stalled clients cost the least.
    /// - Parameters:
    ///   - taken: bytes of the file that the client has received.
    ///   - isScarce: true if the client has more in memory than its share.
    func piece(after taken: Int64, isScarce: Bool) -> Int {
        let share = isScarce || bytes > Self.limit ? Self.least : max(Self.frame, min(Self.most, Self.limit / max(1, streams)))
        return Int(min(Int64(share), max(Int64(Self.least), taken)))
    }
}

/// The bytes that one client has not received yet. The streams count on the event loop; a reply's writer reads from any thread.
final class StreamBacklog: Sendable {
    private let state: Mutex<UnsentBytes>
    private let budget: SharedBudget.Share

    /// - Parameters:
    ///   - patience: the longest time a client may receive nothing on any stream.
    ///   - budget: the client's share of the memory for bodies.
    init(patience: TimeAmount, budget: SharedBudget.Share = .own) {
        state = Mutex(UnsentBytes(patience: patience))
        self.budget = budget
    }

    deinit { budget.change(by: -state.withLock(\.bytes)) }

    var patience: TimeAmount { state.withLock(\.patience) }

    func open() { state.withLock { $0.open() } }

    func close() { state.withLock { $0.close() } }

    func add(_ count: Int, to before: Int) {
        budget.change(by: count)
        state.withLock { $0.add(count, to: before, now: .now()) }
    }

    func take(_ count: Int, leaving rest: Int) {
        budget.change(by: -count)
        state.withLock { $0.take(count, leaving: rest, now: .now()) }
    }

    func drop(_ count: Int, leaving rest: Int) {
        budget.change(by: -count)
        state.withLock { $0.drop(count, leaving: rest) }
    }

    func received() { state.withLock { $0.received(now: .now()) } }

    func isStuck(at now: NIODeadline) -> Bool { state.withLock { $0.isStuck(at: now) } }

    /// Returns the size of the next piece of a file for a stream with `taken` bytes of it received by the client.
    func piece(after taken: Int64) -> Int {
        let isScarce = budget.isExceeded
        return state.withLock { $0.piece(after: taken, isScarce: isScarce) }
    }
}
