// Joins small writes, so that a flush costs one TLS record and not one for each frame (RFC 8446 §5.1).
import NIOCore
import RockpoolCore

/// Precedes the TLS handler on the way out.
final class RecordBatch: ChannelOutboundHandler {
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    /// Bytes of the largest record.
    private static let recordLimit = Int.kib(16)

    private var bytes = ByteBuffer()
    private var written: EventLoopPromise<Void>?

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .byteBuffer(let piece) = unwrapOutboundIn(data), piece.readableBytes <= Self.recordLimit / 2 else {
            pass(context: context)
            return context.write(data, promise: promise)
        }
        if bytes.readableBytes + piece.readableBytes > Self.recordLimit { pass(context: context) }
        bytes.writeImmutableBuffer(piece)
        written.setOrCascade(to: promise)
    }

    func flush(context: ChannelHandlerContext) {
        pass(context: context)
        context.flush()
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        pass(context: context)
        context.close(mode: mode, promise: promise)
    }

    func handlerRemoved(context: ChannelHandlerContext) { written?.fail(ChannelError.ioOnClosedChannel) }

    private func pass(context: ChannelHandlerContext) {
        guard bytes.readableBytes > 0 || written != nil else { return }
        let promise = written
        written = nil
        let batch = bytes
        bytes = ByteBuffer()
        context.write(wrapOutboundOut(.byteBuffer(batch)), promise: promise)
    }
}
