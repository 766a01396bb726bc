// Bytes beyond ASCII in request heads, past a decoder that takes every head for UTF-8 (RFC 9110 §5.5).
import NIOCore

/// Takes such bytes through the decoder: each becomes the character of its number (ISO 8859-1), and is the byte again behind it.
enum ObsText {
    /// The head's bytes as the decoder is to see them.
    static func encoded(_ head: ByteBuffer) -> ByteBuffer {
        guard head.readableBytesView.contains(where: { $0 >= 0x80 }) else { return head }
        var encoded = ByteBuffer()
        encoded.reserveCapacity(head.readableBytes + 64)
        for byte in head.readableBytesView {
            if byte < 0x80 {
                encoded.writeInteger(byte)
            } else {
                encoded.writeInteger(0xC0 | byte >> 6)
                encoded.writeInteger(0x80 | byte & 0x3F)
            }
        }
        return encoded
    }

    /// The bytes that were sent; nil where they are those of the text itself.
    static func decoded(_ value: String) -> [UInt8]? {
        guard value.utf8.contains(where: { $0 >= 0x80 }) else { return nil }
        return value.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
    }
}
