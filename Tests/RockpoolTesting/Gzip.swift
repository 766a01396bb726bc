// Bytes in the coding `gzip`, made without a library: one stored block (RFC 1951 §3.2.4, RFC 1952 §2.3).
import HTTPTypes
package import NIOCore
package import RockpoolCore
import RockpoolEngine

/// Returns a text in the coding `gzip`.
package func gzipped(_ text: String) -> ByteBuffer {
    let bytes = Array(text.utf8)
    precondition(bytes.count <= 0xFFFF)
    var coded = ByteBuffer(bytes: [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 1])
    coded.writeInteger(UInt16(bytes.count), endianness: .little)
    coded.writeInteger(~UInt16(bytes.count), endianness: .little)
    coded.writeBytes(bytes)
    coded.writeInteger(checksum(bytes), endianness: .little)
    coded.writeInteger(UInt32(bytes.count), endianness: .little)
    return coded
}

private func checksum(_ bytes: [UInt8]) -> UInt32 {
    ~bytes.reduce(~0) { sum, byte in
        (0..<8).reduce(sum ^ UInt32(byte)) { value, _ in value & 1 == 1 ? value >> 1 ^ 0xEDB8_8320 : value >> 1 }
    }
}

extension ScriptedAnswer {
    /// The answer with its body in the coding `gzip`.
    package static func gzip(_ head: ResponseHead, _ body: String) -> ScriptedAnswer {
        var head = head
        head.fields[.contentEncoding] = "gzip"
        let coded = gzipped(body)
        return .live(head, BodyPipe(whole: coded), length: Int64(coded.readableBytes))
    }
}
