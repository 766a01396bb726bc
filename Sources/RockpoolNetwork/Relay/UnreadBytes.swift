// Tells whether the kernel has bytes of a connection that were not read (docs/architecture.md#relays).
import Glibc
import NIOCore

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
