// Reads ranges of a stored body, for range requests and for joining parts (RFC 9110 §14).
import Crypto
package import NIOCore

extension CacheStore {
    /// Returns the SHA-256 in hexadecimal that represents a request's body in a cache key.
    package static func digest(of bytes: some Sequence<UInt8>) -> String { Digest.hex(SHA256.hash(data: Array(bytes))) }

    /// Returns the bytes of a body at these offsets; empty when the body does not contain all of them. - Throws: `FileError` of the disk.
    package func read(_ range: Range<Int64>, of body: CachedBody) async throws -> ByteBuffer {
        switch body.slice(range) {
        case nil: return ByteBuffer()
        case .bytes(let bytes): return bytes
        case .file(let path, let offset, let length, let lease):
            defer { withExtendedLifetime(lease) {} }
            return try await lanes.run(UInt64(truncatingIfNeeded: range.lowerBound)) {
                ByteBuffer(bytes: try FileBytes.read(path, from: offset, upTo: Int(length)))
            }
        case .sealed(let file, let range, let lease):
            defer { withExtendedLifetime(lease) {} }
            return try await lanes.run(UInt64(truncatingIfNeeded: range.lowerBound)) { try file.read(range) }
        }
    }
}
