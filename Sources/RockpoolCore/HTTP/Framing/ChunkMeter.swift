// Limits the declared size of chunks and their overhead, because the parser accepts any size and any number of extensions
// (docs/security-model.md#chunked-bodies, row 2; RFC 9112 §7.1; CVE-2023-39326).

/// Tracks the chunked framing of one body in parallel to the validating parser, to enforce two limits that the parser lacks.
package struct ChunkMeter: Hashable, Sendable {
    /// Bytes of chunk sizes, extensions and trailers in excess of what chunks of a reasonable length need.
    package static let overheadLimit = Int.kib(16)
    /// The maximum size of one chunk, equal to that of a Content-Length.
    private static let sizeLimit = UInt64(ByteCount.longestBody.bytes)
    /// Overhead bytes that a chunk may have without counting as excess, in addition to twice its data.
    private static let free = 16

    private enum Place: Hashable { case size, extensions, data, dataEnd, trailers }

    private var place = Place.size
    private var size: UInt64 = 0
    /// Remaining bytes of the current chunk's data.
    private var left: UInt64 = 0
    /// Length of the current line.
    private var line = 0
    private var excess = 0
    /// True once the last chunk and the trailers have been read.
    package private(set) var isEnded = false

    /// Starts at the beginning of a body.
    package init() {}

    /// Reads up to the end of the body. Returns the number of bytes that belong to it; throws a 413 if a limit is exceeded.
    package mutating func read(_ bytes: Span<UInt8>) throws(Refusal) -> Int {
        var index = 0
        while index < bytes.count, !isEnded {
            if place == .data {
                let count = Int(min(left, UInt64(bytes.count - index)))
                (left, index) = (left - UInt64(count), index + count)
                if left == 0 { place = .dataEnd }
                continue
            }
            try step(bytes[index])
            index += 1
        }
        return index
    }

    private mutating func step(_ byte: UInt8) throws(Refusal) {
        line += 1
        guard excess + line <= Self.overheadLimit + Self.free else {
            throw .tooLarge(detail: "the chunks' extensions and trailers are longer than \(Self.overheadLimit) bytes")
        }
        let isLineEnd = byte == 0x0A
        switch place {
        case .size:
            if let digit = Self.digit(byte) {
                size = size << 4 | digit
                guard size <= Self.sizeLimit else { throw .tooLarge(detail: "a chunk is beyond 2^53 bytes") }
            } else {
                place = .extensions
            }
            if isLineEnd { begin() }
        case .extensions: if isLineEnd { begin() }
        case .dataEnd: if isLineEnd { (place, line) = (.size, 0) }
        case .trailers:
            guard isLineEnd else { return }
            isEnded = line <= 2
            excess += line
            line = 0
        case .data: break
        }
    }

    /// Called at the end of the line with the size.
    private mutating func begin() {
        guard size > 0 else {
            (excess, line, place) = (excess + line, 0, .trailers)
            return
        }
        let paid = Self.free + 2 * Int(clamping: min(size, UInt64(Self.overheadLimit)))
        excess = max(0, excess + line + 2 - paid)
        (left, size, line, place) = (size, 0, 0, .data)
    }

    static func digit(_ byte: UInt8) -> UInt64? {
        switch byte {
        case 0x30...0x39: UInt64(byte - 0x30)
        case 0x41...0x46: UInt64(byte - 0x41 + 10)
        case 0x61...0x66: UInt64(byte - 0x61 + 10)
        default: nil
        }
    }
}

extension Refusal {
    fileprivate static func tooLarge(detail: String) -> Refusal { Refusal(status: 413, problem: "body-too-large", detail: detail) }
}
