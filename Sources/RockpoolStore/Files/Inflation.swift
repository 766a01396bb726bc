// Decoding a body piece by piece (RFC 1950, 1951, 1952; RFC 9110 §8.4.1).
import CZlib
package import NIOCore

/// The bytes are not of the coding they are said to be in.
package struct UndecodableBody: Error {}

/// One body in `gzip` or `deflate`, expanded as it is read. Touched by one reader, one call after the other.
// @unchecked Sendable: see above; whoever owns it serialises the calls.
@safe package final class Inflation: @unchecked Sendable {
    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    private var isOpen = false
    /// Whether what was read so far is one or more whole streams.
    package private(set) var isWhole = false

    package init() { unsafe stream.initialize(to: z_stream()) }

    deinit {
        if isOpen { unsafe inflateEnd(stream) }
        unsafe stream.deallocate()
    }

    /// Expands bytes that are taken off `input`, to `limit` bytes at most; nothing when more of them is needed.
    package func expand(_ input: inout ByteBuffer, upTo limit: Int) throws(UndecodableBody) -> ByteBuffer {
        if !isOpen { try open(for: input) }
        if isWhole {
            // Another member, or what some servers leave behind the last one.
            guard input.getInteger(at: input.readerIndex, as: UInt8.self) == 0x1F else {
                input.moveReaderIndex(to: input.writerIndex)
                return ByteBuffer()
            }
            unsafe inflateReset(stream)
            isWhole = false
        }
        var output = ByteBuffer()
        var status = Z_OK
        unsafe output.writeWithUnsafeMutableBytes(minimumWritableBytes: limit) { target in
            unsafe stream.pointee.next_out = target.bindMemory(to: UInt8.self).baseAddress
            unsafe stream.pointee.avail_out = uInt(limit)
            unsafe input.readWithUnsafeReadableBytes { source in
                unsafe stream.pointee.next_in = UnsafeMutablePointer(mutating: source.bindMemory(to: UInt8.self).baseAddress)
                unsafe stream.pointee.avail_in = uInt(source.count)
                status = unsafe inflate(stream, Z_NO_FLUSH)
                return unsafe source.count - Int(stream.pointee.avail_in)
            }
            return unsafe limit - Int(stream.pointee.avail_out)
        }
        switch status {
        case Z_OK, Z_BUF_ERROR: break
        case Z_STREAM_END: isWhole = true
        default: throw UndecodableBody()
        }
        return output
    }

    /// By its first bytes: `deflate` is meant to be a zlib stream, and from many servers is a bare one.
    private func open(for input: ByteBuffer) throws(UndecodableBody) {
        guard let start = input.getInteger(at: input.readerIndex, as: UInt16.self) else { throw UndecodableBody() }
        let isZlib = start % 31 == 0 && start >> 8 & 0x0F == 8
        let isWrapped = isZlib || start == 0x1F8B
        guard unsafe rp_inflate_init(stream, isWrapped ? MAX_WBITS + 32 : -MAX_WBITS) == Z_OK else { throw UndecodableBody() }
        isOpen = true
    }
}
