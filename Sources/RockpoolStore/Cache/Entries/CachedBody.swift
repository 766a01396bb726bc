// The body of a stored response.
package import NIOCore

/// A body with a verified checksum, or a slice of one.
package enum CachedBody: Sendable {
    case bytes(ByteBuffer)
    /// `length` bytes from `offset`, to be opened during the lifetime of the lease, which keeps the file from being unlinked.
    case file(path: String, offset: Int64, length: Int64, lease: BodyLease)
    /// These bytes of a body that lies sealed; read with `CacheStore.read(_:of:)`.
    case sealed(SealedFile, Range<Int64>, lease: BodyLease)

    /// Length in bytes.
    package var length: Int64 {
        switch self {
        case .bytes(let buffer): Int64(buffer.readableBytes)
        case .file(_, _, let length, _): length
        case .sealed(_, let range, _): Int64(range.count)
        }
    }

    /// Returns the bytes at these positions, counted from the first byte of this body; nothing is read or copied (RFC 9110 §14.1.2).
    /// - Returns: nil when the range exceeds the body.
    package func slice(_ range: Range<Int64>) -> CachedBody? {
        guard range.lowerBound >= 0, range.upperBound <= length else { return nil }
        switch self {
        case .bytes(let buffer):
            return buffer.getSlice(at: buffer.readerIndex + Int(range.lowerBound), length: range.count).map(CachedBody.bytes)
        case .file(let path, let offset, _, let lease):
            return .file(path: path, offset: offset + range.lowerBound, length: Int64(range.count), lease: lease)
        case .sealed(let file, let whole, let lease):
            return .sealed(file, whole.lowerBound + range.lowerBound..<whole.lowerBound + range.upperBound, lease: lease)
        }
    }
}
