// Chunked bodies (RFC 9112 §7.1): an upstream's are decoded strictly, a client's are limited in overhead.

/// Decodes the raw bytes of one chunked body (RFC 9112 §7.1, §11.1).
package struct ChunkReader: Sendable {
    private enum Place { case size, padding, extensions, sizeEnd, data, dataEnd, dataLineEnd, trailers, trailer, trailerEnd, lastEnd, end }

    private var place = Place.size
    private var digits = 0
    private var size: UInt64 = 0
    /// Remaining bytes of the current chunk's data.
    private var left: UInt64 = 0
    /// The lines after the last chunk, each with its line end.
    package private(set) var trailers: [[UInt8]] = []
    private var trailer: [UInt8] = []
    /// Limits the bytes that are not data.
    private var meter = ChunkMeter()

    /// Starts at the beginning of a body.
    package init() {}

    /// True once the last chunk and the trailers have been read.
    package var isEnded: Bool { place == .end }

    /// Reads `bytes` and calls `data` with each range of body data in order. Bytes after the end of the body are not read.
    ///
    /// - Returns: the number of bytes read.
    ///
    /// Throws `Refusal` (502) for a byte that the syntax does not allow at its position.
    @discardableResult
    package mutating func read(_ bytes: Span<UInt8>, _ data: (Range<Int>) -> Void) throws(Refusal) -> Int {
        do { _ = try meter.read(bytes) } catch { throw .badGateway(error.detail) }
        var index = 0
        while index < bytes.count, place != .end {
            if place == .data {
                let count = Int(min(left, UInt64(bytes.count - index)))
                data(index..<index + count)
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
        switch place {
        case .size:
            if let digit = ChunkMeter.digit(byte) {
                (size, digits) = (size << 4 | digit, digits + 1)
            } else {
                try require(digits > 0, otherwise: "a chunk without a size")
                place = try afterSize(byte)
            }
        case .padding: place = try afterSize(byte)
        case .extensions: place = byte == 0x0D ? .sizeEnd : try text(byte, place: .extensions)
        case .sizeEnd:
            try lineFeed(byte)
            (left, place) = (size, size > 0 ? .data : .trailers)
        case .dataEnd:
            try require(byte == 0x0D, otherwise: "a chunk is longer than its size, or its data does not end with CRLF")
            place = .dataLineEnd
        case .dataLineEnd: (place, size, digits) = (try lineFeed(byte, then: .size), 0, 0)
        case .trailers:
            place = byte == 0x0D ? .lastEnd : try text(byte, place: .trailer)
            trailer = [byte]
        case .trailer:
            place = byte == 0x0D ? .trailerEnd : try text(byte, place: .trailer)
            trailer.append(byte)
        case .trailerEnd:
            place = try lineFeed(byte, then: .trailers)
            trailers.append(trailer + [byte])
        case .lastEnd: place = try lineFeed(byte, then: .end)
        case .data, .end: break
        }
    }

    /// Some servers pad the size with spaces; nothing else may stand between the size and its extensions.
    private func afterSize(_ byte: UInt8) throws(Refusal) -> Place {
        switch byte {
        case 0x20, 0x09: return .padding
        case 0x3B: return .extensions
        case 0x0D: return .sizeEnd
        default: throw .badGateway("a chunk's size is no hexadecimal number, or its line ends without CRLF")
        }
    }

    private func lineFeed(_ byte: UInt8) throws(Refusal) { try require(byte == 0x0A, otherwise: "a CR without LF in the chunked framing") }

    private func lineFeed(_ byte: UInt8, then next: Place) throws(Refusal) -> Place {
        try lineFeed(byte)
        return next
    }

    private func text(_ byte: UInt8, place: Place) throws(Refusal) -> Place {
        try require(
            byte >= 0x20 && byte != 0x7F || byte == 0x09, otherwise: "a line of the chunked framing ends without CRLF, or holds a control")
        return place
    }

    private func require(_ isMet: Bool, otherwise: String) throws(Refusal) {
        guard isMet else { throw .badGateway(otherwise) }
    }
}

/// Tracks the chunked framing of one body in parallel to the validating parser, to enforce two limits that the parser lacks
/// (docs/security-model.md#chunked-bodies, row 2; CVE-2023-39326).
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
