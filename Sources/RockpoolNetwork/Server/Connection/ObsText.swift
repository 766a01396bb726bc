// Bytes beyond ASCII in request heads, preserved through a decoder that treats heads as UTF-8 (RFC 9110 §5.5).
import NIOCore

/// Encodes such bytes for the decoder: each becomes the character of its number (ISO 8859-1), and is converted back after decoding.
enum ObsText {
    /// Returns the head's bytes for the decoder.
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

    /// Returns the received bytes; nil where they equal the text's.
    static func decoded(_ value: String) -> [UInt8]? {
        guard value.utf8.contains(where: { $0 >= 0x80 }) else { return nil }
        return value.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
    }
}
