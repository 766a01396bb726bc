// Serialises a response head with exactly one framing, chosen by the proxy (RFC 9112 §4, §6; docs/security-model.md#one-framing).
import HTTPTypes
import NIOCore
import NIOHTTP1
import RockpoolCore
import RockpoolEngine

/// The framing of a response body.
enum ReplyFraming: Equatable {
    /// No body, and no field that describes one (1xx, 204, 304).
    case bodiless
    /// Content-Length; for HEAD it is the length a GET would have.
    case length(Int64)
    case chunked
    /// The body ends with the connection: HTTP/1.0 clients.
    case untilClose
}

enum HeadSerializer {
    /// Appends status line, fields, framing and the blank line.
    static func write(_ head: ResponseHead, framing: ReplyFraming, connection: String?, into buffer: inout ByteBuffer) {
        writeStatusLine(head.status, into: &buffer)
        for field in head.fields where field.name != .contentLength && field.name != .transferEncoding && field.name != .connection {
            write(field, into: &buffer)
        }
        switch framing {
        case .bodiless, .untilClose: break
        case .length(let length): buffer.writeString("Content-Length: \(length)\r\n")
        case .chunked: buffer.writeStaticString("Transfer-Encoding: chunked\r\n")
        }
        if let connection { buffer.writeString("Connection: \(connection)\r\n") }
        buffer.writeStaticString("\r\n")
    }

    /// Appends the first line.
    static func writeStatusLine(_ status: Int, into buffer: inout ByteBuffer) {
        buffer.writeStaticString("HTTP/1.1 ")
        buffer.writeString(String(status))
        buffer.writeInteger(UInt8(ascii: " "))
        buffer.writeString(HTTPResponseStatus(statusCode: status).reasonPhrase)
        buffer.writeStaticString("\r\n")
    }

    /// Appends the fields after a chunked body, and the blank line that ends it (RFC 9112 §7.1.2).
    static func writeTrailers(_ fields: HTTPFields, into buffer: inout ByteBuffer) {
        for field in fields { write(field, into: &buffer) }
        buffer.writeStaticString("\r\n")
    }

    private static func write(_ field: HTTPField, into buffer: inout ByteBuffer) {
        buffer.writeString(field.name.rawName)
        buffer.writeStaticString(": ")
        _ = unsafe field.withUnsafeBytesOfValue { unsafe buffer.writeBytes($0) }
        buffer.writeStaticString("\r\n")
    }

    /// Appends one chunk of a chunked body (RFC 9112 §7.1).
    static func writeChunk(_ chunk: ByteBuffer, into buffer: inout ByteBuffer) {
        buffer.writeString(String(chunk.readableBytes, radix: 16))
        buffer.writeStaticString("\r\n")
        buffer.writeImmutableBuffer(chunk)
        buffer.writeStaticString("\r\n")
    }
}

/// A reply whose bytes are all present. On the event loop only.
struct WholeReply {
    let head: ResponseHead
    let framing: ReplyFraming
    /// Nil for a reply without a body, and for the answer to HEAD.
    var body: ByteBuffer?

    /// Writes the reply in the form of HTTP/1; `connection` is the value of `Connection`.
    func writeBytes(context: ChannelHandlerContext, connection: String?) {
        var buffer = context.channel.allocator.buffer(capacity: 512)
        HeadSerializer.write(head, framing: framing, connection: connection, into: &buffer)
        if let body { buffer.writeImmutableBuffer(body) }
        context.writeAndFlush(NIOAny(IOData.byteBuffer(buffer)), promise: nil)
    }

    /// Writes the reply as the parts of an HTTP/2 stream, and ends them. Returns when they are written.
    func writeParts(context: ChannelHandlerContext) -> EventLoopFuture<Void> {
        context.write(NIOAny(ReplyWriter.headPart(head, framing: framing)), promise: nil)
        if let body { context.write(NIOAny(HTTPServerResponsePart.body(.byteBuffer(body))), promise: nil) }
        return context.writeAndFlush(NIOAny(HTTPServerResponsePart.end(nil)))
    }

    /// Writes the head of an interim response (RFC 9110 §15.2); the final reply follows.
    func writeInterim(context: ChannelHandlerContext, wire: ReplyWire) {
        guard wire == .stream else { return writeBytes(context: context, connection: nil) }
        context.writeAndFlush(NIOAny(ReplyWriter.headPart(head, framing: framing)), promise: nil)
    }
}
