// Where a reply's bytes come from, pulled at the pace of whoever reads them.
package import NIOCore
package import RockpoolCore

/// A body that is read chunk by chunk.
package protocol BodySource: Sendable {
    /// The next chunk, nil at the end.
    func next() async throws(TransferFailure) -> ByteBuffer?
    /// The reader leaves before the end.
    func abandon()
}

extension BodySource {
    /// Reads to the end and drops it.
    package func drain() async throws(TransferFailure) {
        while try await next() != nil {}
    }

    /// The first `limit` bytes; what comes after them is read and dropped no further than `limit`, then abandoned.
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
