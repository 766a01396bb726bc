// A reply on an HTTP/2 stream: the same head and body, framed by the connection (RFC 9113 §8.1).
import HTTPTypes
import NIOCore
import NIOHTTP1
import RockpoolCore
import RockpoolEngine

extension ReplyWriter {
    /// Sends the reply as parts, at the pace of the client's flow-control window. Throws when the stream is broken.
    func sendAsParts(_ reply: Reply, framing: ReplyFraming) async throws {
        let head = Self.headPart(reply.head, framing: framing)
        if isHead || framing == .bodiless {
            channel.write(head, promise: nil)
            try await channel.writeAndFlush(HTTPServerResponsePart.end(nil))
            if case .stream(let source, _) = reply.body { try await source.drain() }
            return
        }
        channel.write(head, promise: nil)
        var trailers: HTTPHeaders?
        switch reply.body {
        case .none: break
        case .bytes(let bytes):
            let written = channel.eventLoop.makePromise(of: Void.self)
            channel.write(HTTPServerResponsePart.body(.byteBuffer(bytes)), promise: written)
            sent.add(bytes.readableBytes, when: written.futureResult)
        case .file(let path, let offset, let length, let lease):
            try await sendPieces(of: FileBody(path: path, offset: offset, length: length, lease: lease))
        case .stream(let source, _):
            try await sendParts(of: source)
            if !source.trailers.isEmpty { trailers = HTTPHeaders(source.trailers.map { ($0.name.canonicalName, $0.value) }) }
        }
        try await channel.writeAndFlush(HTTPServerResponsePart.end(trailers))
    }

    /// Sends a streamed body with at most one chunk waiting for the client's window.
    private func sendParts(of source: any BodySource) async throws {
        let channel = channel
        channel.eventLoop.execute { channel.flush() }
        do {
            while let chunk = try await source.next() {
                let isBehind = !channel.isWritable
                let written = sendPart(chunk)
                if isBehind || !channel.isWritable { try await written.get() }
            }
        } catch {
            source.abandon()
            throw error
        }
    }

    /// Reads each piece of the file after the client has received the previous one; a piece is at most as large as the part received so
    /// far.
    private func sendPieces(of file: FileBody) async throws {
        let channel = channel
        channel.eventLoop.execute { channel.flush() }
        while let piece = try await file.next(upTo: backlog?.piece(after: sent.count) ?? UnsentBytes.least) {
            try await sendPart(piece).get()
        }
    }

    private func sendPart(_ bytes: ByteBuffer) -> EventLoopFuture<Void> {
        let written = channel.eventLoop.makePromise(of: Void.self)
        channel.writeAndFlush(HTTPServerResponsePart.body(.byteBuffer(bytes)), promise: written)
        sent.add(bytes.readableBytes, when: written.futureResult)
        return written.futureResult
    }

    /// Returns a head for the codec, which converts it to HTTP/2. Fields of an HTTP/1 connection are omitted.
    static func headPart(_ head: ResponseHead, framing: ReplyFraming) -> HTTPServerResponsePart {
        var headers = HTTPHeaders()
        headers.reserveCapacity(head.fields.count + 1)
        for field in head.fields where field.name != .contentLength && field.name != .transferEncoding && field.name != .connection {
            headers.add(name: field.name.rawName, value: field.value)
        }
        if case .length(let length) = framing { headers.add(name: "content-length", value: String(length)) }
        return .head(HTTPResponseHead(version: .http2, status: HTTPResponseStatus(statusCode: head.status), headers: headers))
    }
}
