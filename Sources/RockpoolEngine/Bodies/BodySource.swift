// The source of a reply's bytes, read at the pace of its reader.
package import HTTPTypes
package import NIOCore
package import RockpoolCore

/// A body that is read chunk by chunk.
package protocol BodySource: Sendable {
    /// Returns the next chunk, nil at the end.
    func next() async throws(TransferFailure) -> ByteBuffer?
    /// Called when the reader leaves before the end.
    func abandon()
    /// The fields after the body, known at its end (RFC 9110 §6.5).
    var trailers: HTTPFields { get }
}

extension BodySource {
    package var trailers: HTTPFields { [:] }

    /// Reads to the end and discards the bytes.
    package func drain() async throws(TransferFailure) {
        while try await next() != nil {}
    }

    /// Returns the first `limit` bytes. If the body is longer, the rest is abandoned and `isWhole` is false.
    package func collect(upTo limit: Int) async throws(TransferFailure) -> (bytes: ByteBuffer, isWhole: Bool) {
        var all = ByteBuffer()
        while var chunk = try await next() {
            if all.readableBytes + chunk.readableBytes > limit {
                if let head = chunk.readSlice(length: limit - all.readableBytes) { all.writeImmutableBuffer(head) }
                abandon()
                return (all, false)
            }
            all.writeBuffer(&chunk)
        }
        return (all, true)
    }
}
