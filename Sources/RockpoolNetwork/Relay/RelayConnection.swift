// A connection to an origin that carries one relayed exchange at a time (docs/architecture.md#relays).
import Glibc
import NIOCore
import NIOTLS
import RockpoolCore

/// Reads as fast as its exchange takes the bytes; when idle, any byte received closes it. On the event loop only.
final class RelayConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    let destination: RelayDestination
    private weak var pool: RelayPool?
    private var context: ChannelHandlerContext?
    private(set) var exchange: RelayedExchange?
    /// When the last exchange ended.
    private(set) var idleSince = NIODeadline.now()
    private(set) var isPaused = false
    /// True once it can carry requests.
    private(set) var isReady = false
    /// True if the connection broke, so that its end is not the end of a body.
    private var isBroken = false
    private var isReadPending = false
    private var unread: UnreadBytes?

    init(to destination: RelayDestination, in pool: RelayPool) { (self.destination, self.pool) = (destination, pool) }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        unread = try? context.pipeline.syncOperations.handler(type: UnreadBytes.self)
        if destination.origin.scheme == .http { beginReady() }
        context.read()
    }

    private func beginReady() {
        isReady = true
        pool?.takeBack(self, isUsed: false)
    }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    // MARK: exchange

    var isOpen: Bool { context?.channel.isActive ?? false }

    /// True if the connection is open and nothing has arrived on it that was not read: bytes between two requests answer neither (RFC 9112 §6.3),
    /// and the loop may not have seen them yet.
    var isQuiet: Bool {
        guard let context, context.channel.isActive else { return false }
        return unread?.areNone(on: context.channel) ?? false
    }

    /// Sends a request whose response `exchange` takes.
    func send(_ request: ByteBuffer, for exchange: RelayedExchange) {
        self.exchange = exchange
        context?.writeAndFlush(wrapOutboundOut(request), promise: nil)
    }

    /// Ends the exchange. The connection takes the next one, unless something follows the response.
    func release(keeps: Bool) {
        exchange = nil
        isPaused = false
        guard keeps, let context, context.channel.isActive else {
            pool?.pause(destination)
            return close()
        }
        idleSince = .now()
        pool?.takeBack(self, isUsed: true)
        resume()
    }

    func pause() { isPaused = true }

    func resume() {
        isPaused = false
        guard isReadPending else { return }
        isReadPending = false
        context?.read()
    }

    /// Closes the connection. Its exchange has ended or does not need it.
    func close() {
        exchange = nil
        context?.close(promise: nil)
    }

    /// Closes the connection, on which the origin was silent: it may serve another one instead.
    func closeSilent() {
        pool?.noteSilent(destination)
        close()
    }

    /// Notes that the connection broke under a request that must not be sent twice.
    func noteLost() { pool?.noteLost(destination) }

    /// Closes the connection under its exchange, which breaks off.
    func drop() {
        isBroken = true
        context?.close(promise: nil)
    }

    // MARK: channel

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // Bytes between two requests answer neither (RFC 9112 §6.3).
        guard let exchange else { return close() }
        exchange.receive(unwrapInboundIn(data))
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if isPaused { isReadPending = true } else { context.read() }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case TLSUserEvent.handshakeCompleted? = event as? TLSUserEvent, !isReady { beginReady() }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        pool?.noteClosed(self)
        let ended = exchange
        exchange = nil
        ended?.connectionClosed(isBroken: isBroken)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        isBroken = true
        context.close(promise: nil)
    }
}

/// Finds the data and the end of one response's body (RFC 9112 §6, §7).
struct RelayBody {
    private enum Framing {
        case length(left: Int64)
        case chunked(ChunkReader)
        case untilClose
    }

    private var framing: Framing
    /// True if the body ends with the connection.
    let endsWithConnection: Bool

    /// - Parameter length: nil for a body that is chunked or ends with the connection.
    init(length: Int64?, isChunked: Bool) {
        framing = isChunked ? .chunked(ChunkReader()) : length.map { .length(left: $0) } ?? .untilClose
        endsWithConnection = !isChunked && length == nil
    }

    var isChunked: Bool { if case .chunked = framing { true } else { false } }

    var isEnded: Bool {
        switch framing {
        case .length(let left): left == 0
        case .chunked(let reader): reader.isEnded
        case .untilClose: false
        }
    }

    /// The lines after the data, each with its line end.
    var trailers: [[UInt8]] { if case .chunked(let reader) = framing { reader.trailers } else { [] } }

    /// Takes the bytes of the body from the front of `bytes`, and returns the data in them. What follows the body stays.
    ///
    /// Throws `Refusal` for an invalid chunked coding.
    mutating func read(_ bytes: inout ByteBuffer) throws(Refusal) -> ByteBuffer {
        switch framing {
        case .length(let left):
            let count = Int(min(left, Int64(bytes.readableBytes)))
            framing = .length(left: left - Int64(count))
            return bytes.readSlice(length: count) ?? ByteBuffer()
        case .untilClose:
            defer { bytes.clear() }
            return bytes
        case .chunked(var reader):
            var data = ByteBuffer()
            let source = bytes
            let count = try reader.read(source.readableBytesUInt8Span) { range in
                guard let part = source.getSlice(at: source.readerIndex + range.lowerBound, length: range.count) else { return }
                data.writeImmutableBuffer(part)
            }
            framing = .chunked(reader)
            bytes.moveReaderIndex(forwardBy: count)
            return data
        }
    }
}

/// Counts the bytes that are read, before any TLS, and compares them with those that the kernel has received. On the event loop only.
final class UnreadBytes: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// The beginning of Linux's `struct tcp_info` in words: `tcpi_bytes_received` is the last one here.
    private struct Info {
        var words = InlineArray<17, UInt64>(repeating: 0)
    }

    private var count: UInt64 = 0

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        count += UInt64(unwrapInboundIn(data).readableBytes)
        context.fireChannelRead(data)
    }

    /// True if all bytes were read and the other side has not ended the connection: its end counts as a byte. A kernel that does not count says
    /// nothing.
    func areNone(on channel: any Channel) -> Bool {
        guard let options = channel as? any SocketOptionProvider else { return true }
        var received: UInt64?
        let info: EventLoopFuture<Info> = options.unsafeGetSocketOption(
            level: SocketOptionLevel(IPPROTO_TCP), name: SocketOptionName(TCP_INFO))
        // On its loop, the future has its value already.
        info.assumeIsolated().whenSuccess { received = $0.words[16] }
        return received.map { $0 == 0 || $0 == count } ?? true
    }
}
