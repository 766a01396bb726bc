// Incremental decoding of a compressed body (RFC 1950, 1951, 1952; RFC 9110 §8.4.1).
import CZlib
package import NIOCore

/// Thrown when the bytes are not in the declared coding.
package struct UndecodableBody: Error {}

/// A body in `gzip` or `deflate`, decoded as it is read. Used by one reader, one call at a time.
// @unchecked Sendable: see above; the owner serialises the calls.
@safe package final class Inflation: ContentDecoder, @unchecked Sendable {
    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    private var isOpen = false
    /// True if the input consumed so far is one or more complete streams.
    package private(set) var isWhole = false

    package init() { unsafe stream.initialize(to: z_stream()) }

    deinit {
        if isOpen { unsafe inflateEnd(stream) }
        unsafe stream.deallocate()
    }

    /// Decodes bytes consumed from `input` into at most `limit` bytes; returns an empty buffer when more input is needed.
    package func expand(_ input: inout ByteBuffer, upTo limit: Int) throws(UndecodableBody) -> ByteBuffer {
        if !isOpen { try open(for: input) }
        if isWhole {
            // The next gzip member, or trailing bytes that some servers append after the last one.
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

    /// Detects the format by the first bytes: `deflate` means a zlib stream, but many servers send raw deflate data.
    private func open(for input: ByteBuffer) throws(UndecodableBody) {
        guard let start = input.getInteger(at: input.readerIndex, as: UInt16.self) else { throw UndecodableBody() }
        let isZlib = start % 31 == 0 && start >> 8 & 0x0F == 8
        let isWrapped = isZlib || start == 0x1F8B
        guard unsafe rp_inflate_init(stream, isWrapped ? MAX_WBITS + 32 : -MAX_WBITS) == Z_OK else { throw UndecodableBody() }
        isOpen = true
    }
}
