// HTTP messages as the blocks of `application/http` records: their heads written and read (ISO 28500:2017 §6.3, §6.4; RFC 9112 §2).
package import HTTPTypes

/// Writes the heads of messages that are put into records.
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

/// Reads the head of the message in a block that comes piece by piece; never holds more than one line.
package struct HTTPBlockHead: Sendable {
    /// What a head was.
    package enum Message: Hashable, Sendable {
        case request(method: String, fields: HTTPFields)
        case response(ResponseHead)
    }

    private var line: [UInt8] = []
    private var response = ResponseHeadLines()
    private var request: (method: String, fields: HTTPFields)?
    private let isRequest: Bool
    private var bytes = 0
    /// As for any response's head.
    private static let limits = ResponseHeadLines.Limits()

    /// A reader at the start of a block.
    package init(isRequest: Bool) { self.isRequest = isRequest }

    /// Takes bytes up to the end of the head and gives it once it is there; what is left in `rest` is the body's.
    ///
    /// Throws when the block is no HTTP message.
    package mutating func take(_ rest: inout ArraySlice<UInt8>) throws(Refusal) -> Message? {
        while let byte = rest.popFirst() {
            line.append(byte)
            bytes += 1
            guard bytes <= Self.limits.headBytes.bytes else { throw .badRequest("its HTTP head is longer than \(Self.limits.headBytes)") }
            guard byte == 0x0A else { continue }
            let whole = line
            line.removeAll(keepingCapacity: true)
            if let message = isRequest ? try takeRequest(whole) : try response.take(whole).map(Message.response) { return message }
        }
        return nil
    }

    private mutating func takeRequest(_ whole: [UInt8]) throws(Refusal) -> Message? {
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
