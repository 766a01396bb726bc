// The flow control of a connection for request data (RFC 9113 §5.2, §6.9).
import NIOCore
import NIOHTTP2
import RockpoolCore
import RockpoolEngine

/// Keeps the connection's window larger than a stream's, so that streams do not wait for it, and stops reading the connection while its
/// streams hold much that is not read and its client has more in memory than its share. Takes the place of the multiplexer, which would give
/// the connection the window of a stream.
final class ConnectionWindow: ChannelDuplexHandler {
    typealias InboundIn = HTTP2Frame
    typealias InboundOut = HTTP2Frame
    typealias OutboundIn = HTTP2Frame
    typealias OutboundOut = HTTP2Frame

    /// Bytes that the streams of a connection may always hold unread.
    static let unreadLimit = Int.kib(64)
    /// The time after which it is checked again whether the client has room.
    private static let pause = TimeAmount.milliseconds(100)

    private let target: Int
    private let memory: () -> SharedBudget.Share?
    /// Bytes of each stream that wait to be read.
    private var unread: [HTTP2StreamID: Int] = [:]
    private var total = 0
    /// The share in which those bytes are counted.
    private var counted: SharedBudget.Share?
    private var isReadPending = false
    private var context: ChannelHandlerContext?

    /// - Parameters:
    ///   - target: bytes.
    ///   - memory: the client's share of the memory for bodies.
    init(target: Int, memory: @escaping () -> SharedBudget.Share? = { nil }) { (self.target, self.memory) = (target, memory) }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        change(by: -total)
        unread = [:]
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        if case .data(let body) = frame.payload, body.data.readableBytes > 0 {
            unread[frame.streamID, default: 0] += body.data.readableBytes
            change(by: body.data.readableBytes)
        }
        context.fireChannelRead(data)
    }

    /// Notes that bytes of a stream were passed on to where they are counted again.
    func delivered(_ count: Int, on stream: HTTP2StreamID) {
        guard let left = unread[stream] else { return }
        let count = min(count, left)
        unread[stream] = left > count ? left - count : nil
        change(by: -count)
        resume()
    }

    private func change(by count: Int) {
        total += count
        if counted == nil { counted = memory() }
        counted?.change(by: count)
        if total == 0 { counted = nil }
    }

    private var mayRead: Bool { total <= Self.unreadLimit || counted?.isExceeded != true }

    func read(context: ChannelHandlerContext) {
        if mayRead { return context.read() }
        guard !isReadPending else { return }
        isReadPending = true
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: Self.pause) { me.value.lookAgain() }
    }

    private func lookAgain() {
        guard isReadPending, let context else { return }
        isReadPending = false
        read(context: context)
    }

    private func resume() { if isReadPending, mayRead { lookAgain() } }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let event = event as? StreamClosedEvent, let left = unread.removeValue(forKey: event.streamID) {
            change(by: -left)
            resume()
        }
        guard let event = event as? NIOHTTP2WindowUpdatedEvent, event.streamID == .rootStream else {
            return context.fireUserInboundEventTriggered(event)
        }
        guard let size = event.inboundWindowSize, size <= target / 2 else { return }
        let frame = HTTP2Frame(streamID: .rootStream, payload: .windowUpdate(windowSizeIncrement: target - size))
        context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    }
}
