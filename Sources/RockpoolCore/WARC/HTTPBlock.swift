// HTTP messages as the blocks of `application/http` records: serialises and parses their heads (ISO 28500:2017 §6.3, §6.4; RFC 9112 §2).
package import HTTPTypes

/// Serialises the heads of messages for records.
package enum HTTPBlock {
    /// Status line, fields and the empty line; the body follows.
    package static func bytes(of response: ResponseHead) -> [UInt8] {
        Array("HTTP/1.1 \(response.status) \r\n".utf8) + lines(of: response.fields)
    }

    /// A request without a body: request line, Host, `fields` and the empty line.
    package static func bytes(of request: RequestHead) -> [UInt8] {
        let start = "\(request.method.rawValue) \(request.target) HTTP/1.1\r\nHost: \(request.origin.authority)\r\n"
        return Array(start.utf8) + lines(of: request.fields)
    }

    private static func lines(of fields: HTTPFields) -> [UInt8] {
        var bytes: [UInt8] = []
        for field in fields {
            bytes += Array("\(field.name.rawName): ".utf8)
            bytes += field.valueBytes
            bytes += [0x0D, 0x0A]
        }
        return bytes + [0x0D, 0x0A]
    }
}

/// Parses the head of the message in a block that arrives in pieces; buffers at most one line.
package struct HTTPBlockHead: Sendable {
    /// The parsed head.
    package enum Message: Hashable, Sendable {
        case request(method: String, fields: HTTPFields)
        case response(ResponseHead)
    }

    private var line: [UInt8] = []
    private var response = ResponseHeadLines()
    private var request: (method: String, fields: HTTPFields)?
    private let isRequest: Bool
    private var bytes = 0
    /// The same limits as for any response head.
    private static let limits = ResponseHeadLines.Limits()

    /// A parser at the start of a block.
    package init(isRequest: Bool) { self.isRequest = isRequest }

    /// Consumes bytes up to the end of the head and returns the head once it is complete; the bytes left in `rest` belong to the body.
    ///
    /// Throws if the block is not an HTTP message.
    package mutating func take(from rest: inout ArraySlice<UInt8>) throws(Refusal) -> Message? {
        while let byte = rest.popFirst() {
            line.append(byte)
            bytes += 1
            guard bytes <= Self.limits.headBytes.bytes else { throw .badRequest("its HTTP head is longer than \(Self.limits.headBytes)") }
            guard byte == 0x0A else { continue }
            let whole = line
            line.removeAll(keepingCapacity: true)
            if let message = isRequest ? try takeRequest(from: whole) : try response.take(whole).map(Message.response) { return message }
        }
        return nil
    }

    private mutating func takeRequest(from whole: [UInt8]) throws(Refusal) -> Message? {
        guard whole.suffix(2) == [0x0D, 0x0A] else { throw .badRequest("a line of its HTTP head ends without CRLF") }
        let content = whole.dropLast(2)
        guard let request else {
            let words = content.split(separator: 0x20, omittingEmptySubsequences: false)
            guard words.count == 3, !words[0].isEmpty, words[0].allSatisfy(FieldByte.isTokenByte), words[2].starts(with: "HTTP/".utf8)
            else { throw .badRequest("no request line of HTTP") }
            self.request = (String(decoding: words[0], as: UTF8.self), [:])
            return nil
        }
        if content.isEmpty { return .request(method: request.method, fields: request.fields) }
        guard request.fields.count < Self.limits.fields else { throw .badRequest("more than \(Self.limits.fields) fields") }
        self.request?.fields.append(try ResponseGate.field(ofLine: content))
        return nil
    }
}
