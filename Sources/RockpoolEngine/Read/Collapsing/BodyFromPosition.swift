// The end of a body whose beginning is not needed: an origin may answer a range with the whole (RFC 9110 §14.2).
import NIOCore
import RockpoolCore
import Synchronization

/// Discards the first bytes of a body.
final class BodyFromPosition: BodySource {
    private let source: any BodySource
    private let left: Mutex<Int64>

    /// - Parameter position: The number of bytes that are discarded.
    init(_ source: any BodySource, position: Int64) {
        self.source = source
        left = Mutex(position)
    }

    func next() async throws(TransferFailure) -> ByteBuffer? {
        while var chunk = try await source.next() {
            let skipped = left.withLock { left in
                let skipped = min(left, Int64(chunk.readableBytes))
                left -= skipped
                return skipped
            }
            chunk.moveReaderIndex(forwardBy: Int(skipped))
            if chunk.readableBytes > 0 { return chunk }
        }
        return nil
    }

    func abandon() { source.abandon() }
}
