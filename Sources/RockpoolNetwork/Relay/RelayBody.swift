// The framing of a relayed body (RFC 9112 §6, §7).
import NIOCore
import RockpoolCore

/// Finds the data and the end of one response's body.
struct RelayBody {
    private enum Framing {
        case length(left: Int64)
        case chunked(ChunkReader)
        case untilClose
    }

    private var framing: Framing
    /// True if the body ends with the connection.
    let endsWithConnection: Bool

    /// - Parameter length: nil for a body that is chunked or ends with the connection.
    init(length: Int64?, isChunked: Bool) {
        framing = isChunked ? .chunked(ChunkReader()) : length.map { .length(left: $0) } ?? .untilClose
        endsWithConnection = !isChunked && length == nil
    }

    var isChunked: Bool { if case .chunked = framing { true } else { false } }

    var isEnded: Bool {
        switch framing {
        case .length(let left): left == 0
        case .chunked(let reader): reader.isEnded
        case .untilClose: false
        }
    }

    /// Takes the bytes of the body from the front of `bytes`, and returns the data in them. What follows the body stays.
    ///
    /// Throws `Refusal` for an invalid chunked coding.
    mutating func read(_ bytes: inout ByteBuffer) throws(Refusal) -> ByteBuffer {
        switch framing {
        case .length(let left):
            let count = Int(min(left, Int64(bytes.readableBytes)))
            framing = .length(left: left - Int64(count))
            return bytes.readSlice(length: count) ?? ByteBuffer()
        case .untilClose:
            defer { bytes.clear() }
            return bytes
        case .chunked(var reader):
            var data = ByteBuffer()
            let source = bytes
            let count = try reader.read(source.readableBytesUInt8Span) { range in
                guard let part = source.getSlice(at: source.readerIndex + range.lowerBound, length: range.count) else { return }
                data.writeImmutableBuffer(part)
            }
            framing = .chunked(reader)
            bytes.moveReaderIndex(forwardBy: count)
            return data
        }
    }
}
