// Validates an upstream's response head before it is forwarded or stored; otherwise the client gets 502 (RFC 9112 §4–§6;
// docs/security-model.md#response-gate).
package import HTTPTypes

/// Semantic validation of upstream responses.
package enum ResponseGate {
    /// The reason why a response with status 407 is refused.
    static let proxyChallenge = "an origin asked for a proxy's credentials"

    /// Validates a final or interim head and returns the framing of its body; nil means that the body ends when the connection closes.
    /// `requestMethod` is the method sent upstream, never with Upgrade: the code that tunnels an Upgrade handles its 101 itself.
    package static func check(status: Int, fields: HTTPFields, requestMethod: String) throws(Refusal) -> Framing? {
        guard (100...599).contains(status) else { throw .badGateway("the status \(status) is not of HTTP") }
        guard status != 101 else { throw .badGateway("101 without a request to switch protocols") }  // RFC 9110 §15.2.2
        guard status != 407 else { throw .badGateway(proxyChallenge) }  // RFC 9110 §11.7.1
        let declared: Framing?
        do { declared = try Framing.declared(by: fields, allowsCoding: true) } catch { throw .badGateway(error.description) }
        return hasNoBody(status: status, requestMethod: requestMethod) ? Framing.none : declared
    }

    /// RFC 9112 §6.3, the first two rules, which apply whatever the fields declare.
    private static func hasNoBody(status: Int, requestMethod: String) -> Bool {
        switch status {
        case 100...199, 204, 304: true
        case 200...299: requestMethod == "HEAD" || requestMethod == "CONNECT"
        default: requestMethod == "HEAD"
        }
    }

    /// The status of a status line without its CRLF. The reason phrase is dropped, because it has no meaning (RFC 9112 §4).
    static func status(ofLine line: ArraySlice<UInt8>) throws(Refusal) -> Int {
        let parts = line.split(separator: 0x20, maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count >= 2, isVersion(parts[0]), parts[1].count == 3, parts[1].allSatisfy(\.isDigit),
            let status = Int(String(decoding: parts[1], as: UTF8.self)), isValue(line)
        else { throw .badGateway("no status line of HTTP/1 or HTTP/2") }
        guard (100...599).contains(status) else { throw .badGateway("the status \(status) is not of HTTP") }
        return status
    }

    /// The field of a field line without its CRLF. Non-ASCII bytes are kept.
    package static func field(ofLine line: ArraySlice<UInt8>) throws(Refusal) -> HTTPField {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { throw .badGateway("a line of the head without a colon") }
        // A folded line starts with a space, and whitespace before the colon ends the name with one; neither is a token (RFC 9112 §5.1,
        // §5.2).
        guard let name = HTTPField.Name(String(decoding: line[..<colon], as: UTF8.self)) else {
            throw .badGateway("a field name is no token")
        }
        let value = line[(colon + 1)...].trimmingOWS()
        guard isValue(value) else { throw .badGateway("\(name.rawName) holds a control character") }
        return HTTPField(name: name, value: value)
    }

    /// `HTTP/1.0`, `HTTP/1.1`, and the versions libcurl writes for HTTP/2 and HTTP/3.
    private static func isVersion(_ bytes: ArraySlice<UInt8>) -> Bool {
        ["HTTP/1.1", "HTTP/1.0", "HTTP/2", "HTTP/3"].contains { bytes.elementsEqual($0.utf8) }
    }

    /// Visible characters, spaces, tabs and obs-text (RFC 9110 §5.5).
    private static func isValue(_ bytes: ArraySlice<UInt8>) -> Bool {
        bytes.allSatisfy(FieldByte.isValue)
    }
}

extension ArraySlice<UInt8> {
    /// Without spaces and tabs around it.
    func trimmingOWS() -> ArraySlice<UInt8> {
        var bytes = self
        while bytes.first?.isOWS == true { bytes.removeFirst() }
        while bytes.last?.isOWS == true { bytes.removeLast() }
        return bytes
    }
}

/// Parses the lines of one upstream response (RFC 9112 §2.2, §4, §5): any interim heads, then the final one.
package struct ResponseHeadLines: Sendable {
    /// Limits of an upstream's head; beyond them the response is 502.
    package struct Limits: Hashable, Sendable {
        /// Bytes of all lines of one head.
        package var headBytes = ByteCount.kib(256)
        /// Field lines of one head.
        package var fields = 256
        /// 1xx responses before the final one.
        package var interim = 16

        /// The default limits.
        package init() {}
    }

    private let limits: Limits
    /// True if a line may end in LF alone, which RFC 9112 §2.2 permits a recipient to accept.
    private let allowsBareLF: Bool
    private var status: Int?
    private var fields = HTTPFields()
    private var bytes: Int64 = 0
    private var interim = 0

    /// A parser at the start of a response.
    package init(limits: Limits = Limits(), allowsBareLF: Bool = false) {
        self.limits = limits
        self.allowsBareLF = allowsBareLF
    }

    /// Consumes one line with its line end. Returns the head at the empty line that ends it, and is then ready for the next head. Throws a
    /// 502 for anything that is not a well-formed line.
    package mutating func take(_ line: [UInt8]) throws(Refusal) -> ResponseHead? {
        bytes = bytes.addedClamped(Int64(line.count))
        guard bytes <= limits.headBytes.bytes else { throw .badGateway("the response's head is longer than \(limits.headBytes)") }
        let isStrict = line.suffix(2) == [0x0D, 0x0A]
        guard isStrict || (allowsBareLF && line.last == 0x0A) else { throw .badGateway("a line of the head ends without CRLF") }
        let content = line.dropLast(isStrict ? 2 : 1)
        guard let status else {
            self.status = try ResponseGate.status(ofLine: content)
            return nil
        }
        if content.isEmpty { return try end(status) }
        guard fields.count < limits.fields else { throw .badGateway("the response has more than \(limits.fields) fields") }
        fields.append(try ResponseGate.field(ofLine: content))
        return nil
    }

    private mutating func end(_ status: Int) throws(Refusal) -> ResponseHead {
        if (100...199).contains(status) { interim += 1 }
        guard interim <= limits.interim else { throw .badGateway("more than \(limits.interim) interim responses") }
        let head = ResponseHead(status: status, fields: fields)
        self.status = nil
        fields = HTTPFields()
        bytes = 0
        return head
    }
}
