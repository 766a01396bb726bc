// Decodes the chunked body of an upstream's response strictly: leniency about line ends lets two recipients parse different messages
// (RFC 9112 §7.1, §11.1).

/// Decodes the raw bytes of one chunked body.
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
