// The bytes of a response head and of chunks: exactly one framing, chosen by the serializer (RFC 9112 §4, §6, §7.1).
import HTTPTypes
import NIOCore
import RockpoolCore
import Testing

@testable import RockpoolNetwork

struct HeadSerializerTests {
    private func text(_ head: ResponseHead, _ framing: ReplyFraming, _ connection: String? = nil) -> String {
        var buffer = ByteBuffer()
        HeadSerializer.write(head, framing: framing, connection: connection, into: &buffer)
        return String(buffer: buffer)
    }

    @Test(
        arguments: [
            (ReplyFraming.bodiless, nil, ""), (.length(5), nil, "Content-Length: 5\r\n"), (.chunked, nil, "Transfer-Encoding: chunked\r\n"),
            (.untilClose, "close", "Connection: close\r\n"), (.length(0), "keep-alive", "Content-Length: 0\r\nConnection: keep-alive\r\n"),
        ] as [(ReplyFraming, String?, String)])
    func everyFramingIsWrittenOnce(framing: ReplyFraming, connection: String?, lines: String) {
        #expect(text(ResponseHead(status: 200), framing, connection) == "HTTP/1.1 200 OK\r\n\(lines)\r\n")
    }

    @Test func framingThatCameWithTheHeadIsReplaced() {
        var head = ResponseHead(status: 200, fields: [.contentLength: "9", .transferEncoding: "chunked", .connection: "x", .eTag: "\"e\""])
        head.fields.append(HTTPField(name: .contentLength, value: "10"))
        #expect(text(head, .length(3)) == "HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: 3\r\n\r\n")
    }

    @Test func fieldsKeepTheirOrderSpellingAndRepetition() throws {
        var head = ResponseHead(status: 204)
        for (name, value) in [("X-b", "2"), ("x-A", "1"), ("X-b", "3")] {
            head.fields.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value))
        }
        #expect(text(head, .bodiless) == "HTTP/1.1 204 No Content\r\nX-b: 2\r\nx-A: 1\r\nX-b: 3\r\n\r\n")
    }

    @Test(arguments: [(100, "Continue"), (304, "Not Modified"), (508, "Loop Detected")])
    func theReasonIsTheRegisteredOne(status: Int, reason: String) {
        #expect(text(ResponseHead(status: status), .bodiless).hasPrefix("HTTP/1.1 \(status) \(reason)\r\n"))
    }

    @Test func anUnknownStatusKeepsItsNumber() { #expect(text(ResponseHead(status: 299), .bodiless).hasPrefix("HTTP/1.1 299 ")) }

    @Test(arguments: [("a", "1\r\na\r\n"), (String(repeating: "x", count: 26), "1a\r\n\(String(repeating: "x", count: 26))\r\n")])
    func chunksCarryTheirLengthInHexadecimal(bytes: String, written: String) {
        var buffer = ByteBuffer()
        HeadSerializer.writeChunk(ByteBuffer(string: bytes), into: &buffer)
        #expect(String(buffer: buffer) == written)
    }
}
