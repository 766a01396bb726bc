// Decoders of content codings (RFC 9110 §8.4.1, RFC 7932, RFC 8878).
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
