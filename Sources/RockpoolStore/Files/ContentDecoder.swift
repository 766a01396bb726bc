// Decoders of content codings (RFC 9110 §8.4.1, RFC 7932, RFC 8878).
import CZlib
package import HTTPTypes
package import NIOCore
import RockpoolCore

/// A body in one coding, decoded as it is read. Used by one reader, one call at a time.
package protocol ContentDecoder: AnyObject, Sendable {
    /// True if the input consumed so far is one or more complete streams.
    var isWhole: Bool { get }

    /// Decodes bytes consumed from `input` into at most `limit` bytes; returns an empty buffer when more input is needed.
    func expand(_ input: inout ByteBuffer, upTo limit: Int) throws(UndecodableBody) -> ByteBuffer
}

/// Makes decoders.
package enum ContentDecoders {
    /// Returns a decoder for content of a response with these fields; nil if it has no single coding that can be decoded here
    /// (`ContentCoding.decodable`).
    package static func decoder(of fields: HTTPFields) -> (any ContentDecoder)? {
        switch ContentCoding.single(in: fields) {
        case "gzip", "x-gzip", "deflate": Inflation()
        case "br": CodingLibrary.brotli.flatMap(BrotliDecoder.init)
        case "zstd": CodingLibrary.zstd.flatMap(ZstandardDecoder.init)
        default: nil
        }
    }
}

/// A body in `br`.
// @unchecked Sendable: as of its protocol; the owner serialises the calls.
@safe private final class BrotliDecoder: ContentDecoder, @unchecked Sendable {
    private typealias Bytes = UnsafePointer<UInt8>
    private typealias Room = UnsafeMutablePointer<UInt8>
    private typealias Decode =
        @convention(c) (
            UInt, UnsafeMutablePointer<Int>, UnsafeMutablePointer<Bytes?>, UnsafeMutablePointer<Int>, UnsafeMutablePointer<Room?>, UInt
        ) -> CInt

    private let library: CodingLibrary
    /// The library's object.
    private let state: UInt
    private(set) var isWhole = false

    init?(_ library: CodingLibrary) {
        let create = library.function("BrotliDecoderCreateInstance", as: (@convention(c) (UInt, UInt, UInt) -> UInt).self)
        (self.library, state) = (library, create(0, 0, 0))
        if state == 0 { return nil }
    }

    deinit { if state != 0 { library.function("BrotliDecoderDestroyInstance", as: (@convention(c) (UInt) -> Void).self)(state) } }

    func expand(_ input: inout ByteBuffer, upTo limit: Int) throws(UndecodableBody) -> ByteBuffer {
        if isWhole {
            input.moveReaderIndex(to: input.writerIndex)
            return ByteBuffer()
        }
        let decode = unsafe library.function("BrotliDecoderDecompressStream", as: Decode.self)
        var output = ByteBuffer()
        var result: CInt = 0
        unsafe output.writeWithUnsafeMutableBytes(minimumWritableBytes: limit) { target in
            var (next, room) = unsafe (target.bindMemory(to: UInt8.self).baseAddress, limit)
            unsafe input.readWithUnsafeReadableBytes { source in
                var (start, left) = unsafe (source.bindMemory(to: UInt8.self).baseAddress, source.count)
                result = unsafe decode(state, &left, &start, &room, &next, 0)
                return source.count - left
            }
            return limit - room
        }
        // 1: the end; 2: more input is needed; 3: more room is needed; 0: an error.
        guard (1...3).contains(result) else { throw UndecodableBody() }
        isWhole = result == 1
        return output
    }
}

/// A body in `zstd`.
// @unchecked Sendable: as of its protocol; the owner serialises the calls.
@safe private final class ZstandardDecoder: ContentDecoder, @unchecked Sendable {
    private typealias Decode = @convention(c) (UInt, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) -> UInt
    /// `ZSTD_d_windowLogMax`, and the greatest window that a sender may use, 8 MiB (RFC 9659 §3).
    private static let (windowParameter, greatestWindow): (CInt, CInt) = (100, 23)

    private let library: CodingLibrary
    /// The library's object.
    private let state: UInt
    private(set) var isWhole = false

    init?(_ library: CodingLibrary) {
        (self.library, state) = (library, library.function("ZSTD_createDStream", as: (@convention(c) () -> UInt).self)())
        if state == 0 { return nil }
        let set = library.function("ZSTD_DCtx_setParameter", as: (@convention(c) (UInt, CInt, CInt) -> UInt).self)
        _ = set(state, Self.windowParameter, Self.greatestWindow)
    }

    deinit { if state != 0 { _ = library.function("ZSTD_freeDStream", as: (@convention(c) (UInt) -> UInt).self)(state) } }

    func expand(_ input: inout ByteBuffer, upTo limit: Int) throws(UndecodableBody) -> ByteBuffer {
        // Without input it would begin another frame.
        if isWhole, input.readableBytes == 0 { return ByteBuffer() }
        let decode = unsafe library.function("ZSTD_decompressStream", as: Decode.self)
        var output = ByteBuffer()
        var result: UInt = 0
        unsafe output.writeWithUnsafeMutableBytes(minimumWritableBytes: limit) { target in
            // ZSTD_outBuffer and ZSTD_inBuffer: address, size, position.
            var room = [UInt(bitPattern: target.baseAddress), UInt(limit), 0]
            unsafe input.readWithUnsafeReadableBytes { source in
                var bytes = [UInt(bitPattern: source.baseAddress), UInt(source.count), 0]
                result = unsafe room.withUnsafeMutableBytes { room in
                    unsafe bytes.withUnsafeMutableBytes { bytes in unsafe decode(state, room.baseAddress, bytes.baseAddress) }
                }
                return Int(bytes[2])
            }
            return Int(room[2])
        }
        let isError = library.function("ZSTD_isError", as: (@convention(c) (UInt) -> CUnsignedInt).self)
        guard isError(result) == 0 else { throw UndecodableBody() }
        isWhole = result == 0
        return output
    }
}

// MARK: - gzip and deflate
// Incremental decoding of a compressed body (RFC 1950, 1951, 1952; RFC 9110 §8.4.1).

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

/// One-shot zlib compression and decompression for bodies that fit into memory (RFC 1950).
enum Deflate {
    /// The fastest level: on JSON and text it saves nine tenths of the default level's saving in a third of its time.
    private static let level: CInt = 1

    /// - Returns: nil when the result would exceed `limit` bytes.
    static func compress(_ bytes: UnsafeRawBufferPointer, upTo limit: Int) -> [UInt8]? {
        var stream = unsafe z_stream()
        let bits = windowBits(for: bytes.count)
        guard unsafe rp_deflate_init(&stream, level, bits, max(1, bits - 7)) == Z_OK else { return nil }
        defer { unsafe deflateEnd(&stream) }
        var status = Z_BUF_ERROR
        let deflated = unsafe [UInt8](unsafeUninitializedCapacity: max(0, limit)) { target, count in
            unsafe stream.next_in = UnsafeMutablePointer(mutating: bytes.bindMemory(to: UInt8.self).baseAddress)
            unsafe (stream.avail_in, stream.next_out, stream.avail_out) = (uInt(bytes.count), target.baseAddress, uInt(target.count))
            status = unsafe deflate(&stream, Z_FINISH)
            count = status == Z_STREAM_END ? unsafe Int(stream.total_out) : 0
        }
        return status == Z_STREAM_END ? deflated : nil
    }

    /// The window that holds a whole body, 2⁹ to 2¹⁵ bytes. To clear the tables of the largest one takes ten times as long as to compress 1 KB.
    private static func windowBits(for count: Int) -> CInt { CInt(min(15, max(9, Int.bitWidth - (count - 1).leadingZeroBitCount))) }

    /// - Returns: nil when the bytes are not a valid stream of exactly `length` bytes; a damaged stream cannot expand beyond `length`.
    static func expand(_ bytes: UnsafeRawBufferPointer, to length: Int) -> [UInt8]? {
        var status = Z_DATA_ERROR
        let expanded = unsafe [UInt8](unsafeUninitializedCapacity: length) { target, count in
            var produced = uLongf(length)
            status = unsafe uncompress(target.baseAddress, &produced, bytes.bindMemory(to: UInt8.self).baseAddress, uLong(bytes.count))
            count = status == Z_OK ? Int(produced) : 0
        }
        return status == Z_OK && expanded.count == length ? expanded : nil
    }
}

extension StoredCoding {
    /// Returns the body as it was received, from its opened form; nil when the decoded body is not exactly `length` bytes.
    func expanded(_ stored: [UInt8], to length: Int) -> [UInt8]? {
        guard isDeflated else { return stored.count == length ? stored : nil }
        return unsafe stored.withUnsafeBytes { unsafe Deflate.expand($0, to: length) }
    }
}
