// The first bytes of a longer body.
import NIOCore
import RockpoolCore
import Synchronization

/// A fixed number of bytes of a body; the rest is abandoned.
final class BodySlice: BodySource {
    private let source: any BodySource
    private let left: Mutex<Int64>

    init(_ source: any BodySource, length: Int64) {
        self.source = source
        left = Mutex(length)
    }

    func next() async throws(TransferFailure) -> ByteBuffer? {
        let wanted = left.withLock(\.self)
        guard wanted > 0 else { return nil }
        guard var chunk = try await source.next() else {
            throw TransferFailure(kind: .reset, sent: .yes, detail: "the body ended before the range that was asked for")
        }
        if Int64(chunk.readableBytes) >= wanted {
            chunk = chunk.readSlice(length: Int(wanted)) ?? chunk
            source.abandon()
        }
        left.withLock { $0 -= Int64(chunk.readableBytes) }
        return chunk
    }

    func abandon() { source.abandon() }
}
