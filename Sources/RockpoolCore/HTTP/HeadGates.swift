// Validates decoded heads by the rules that the HTTP parser does not check: a client's request (docs/security-model.md#request-gate), and
// an upstream's response before it is forwarded or stored.
package import HTTPTypes

/// Semantic validation after the decoder, which has already rejected invalid bytes (RFC 9110, RFC 9112 §2–§6;
/// docs/security-model.md#request-gate).
package enum RequestGate {
    /// The parsed data of a valid head.
    package struct Admission: Hashable, Sendable {
        /// The target in the form it was received.
        package var target: RequestTarget
        /// The value of Host; nil only in HTTP/1.0. An absolute target overrides it (RFC 9112 §3.2.2).
        package var host: Authority?
        /// The framing of the body.
        package var framing: Framing

        /// An admission, as returned by `admit`.
        package init(target: RequestTarget, host: Authority?, framing: Framing) {
            self.target = target
            self.host = host
            self.framing = framing
        }
    }

    /// Validates a decoded head and returns the framing of its body; throws the error response otherwise. For a request of an HTTP/2
    /// stream, `version` is 1.1.
    package static func check(
        method: String, target: String, version: (major: Int, minor: Int), fields: HTTPFields, limits: ClientLimits
    ) throws(Refusal) -> Framing {
        try admit(method: method, target: target, version: version, fields: fields, limits: limits).framing
    }

    /// The same check, which also returns the parsed target.
    /// - Parameter hasRawValues: True if the fields' values are the exact bytes received, so that decoding has lost nothing.
    package static func admit(
        method: String, target: String, version: (major: Int, minor: Int), fields: HTTPFields, limits: ClientLimits,
        hasRawValues: Bool = false
    ) throws(Refusal) -> Admission {
        guard version.major == 1, version.minor == 0 || version.minor == 1 else {
            throw .versionNotSupported
        }
        guard HTTPRequest.Method(method) != nil else { throw .badRequest("the method is not a token") }
        guard target.utf8.count <= limits.targetBytes.bytes else {
            throw Refusal(status: 414, problem: "target-too-long", detail: "the target is longer than \(limits.targetBytes)")
        }
        try checkSizes(target: target, fields: fields, limits: limits, hasRawValues: hasRawValues)
        try checkSingletons(in: fields)
        guard method != "TRACE" else {  // TRACE would reveal the fields that proxies add (RFC 9110 §9.3.8)
            throw Refusal(status: 405, problem: "method-not-allowed", detail: "TRACE is not served")
        }
        let parsed = try RequestTarget.parse(target, method: method)
        let host = try checkHost(in: fields, target: parsed, isHTTP11: version.minor == 1)
        let framing = try checkFraming(method: method, fields: fields, isHTTP11: version.minor == 1)
        try HopByHop.checkConnection(in: fields)
        try checkExpectation(in: fields)
        return Admission(target: parsed, host: host, framing: framing)
    }

    private static func checkSizes(
        target: String, fields: HTTPFields, limits: ClientLimits, hasRawValues: Bool
    ) throws(Refusal) {
        guard fields.count <= limits.fields else { throw .headTooLarge("more than \(limits.fields) fields") }
        var head = Int64(target.utf8.count)
        for field in fields {
            let isName = hasRawValues && isIdentifying(field.name)
            let (length, isLossy) = unsafe field.withUnsafeBytesOfValue { bytes in
                let isText = unsafe !isName || String(validating: bytes, as: UTF8.self) != nil
                return unsafe (bytes.count, !isText || (!hasRawValues && holdsReplacement(bytes.span)))
            }
            let line = Int64(field.name.rawName.utf8.count + length + 4)  // ": " and CRLF
            guard line <= limits.fieldBytes.bytes else { throw .headTooLarge("a field is longer than \(limits.fieldBytes)") }
            guard !isLossy else { throw .badRequest("\(field.name.rawName) is not UTF-8") }
            head += line
        }
        guard head <= limits.headBytes.bytes else { throw .headTooLarge("the head is longer than \(limits.headBytes)") }
    }

    /// Fields that identify the client or an earlier request: they are compared as text.
    private static func isIdentifying(_ name: HTTPField.Name) -> Bool {
        name == .proxyAuthorization || name == .idempotencyKey || SecretFields.identifies(name)
    }

    /// A decoder replaces bytes that are not UTF-8 by U+FFFD. Two different values could become equal, so decoded values that contain it
    /// are rejected. Raw values (except in identifying fields) are accepted, but responses that vary by them are not stored
    /// (`Storability`).
    private static func holdsReplacement(_ bytes: Span<UInt8>) -> Bool {
        guard bytes.count >= 3 else { return false }
        for index in 0..<(bytes.count - 2) where bytes[index] == 0xEF && bytes[index + 1] == 0xBF && bytes[index + 2] == 0xBD {
            return true
        }
        return false
    }

    /// Fields that two recipients could read differently if repeated. Host and the framing fields are checked separately.
    private static func checkSingletons(in fields: HTTPFields) throws(Refusal) {
        for name in singletons where fields.contains(name) && fields[values: name].count > 1 {
            throw .badRequest("more than one \(name.rawName)")
        }
    }

    private static let singletons: [HTTPField.Name] = [.authorization, .proxyAuthorization, .idempotencyKey]

    /// RFC 9112 §3.2: HTTP/1.1 requires Host; HTTP/1.0 may omit it if the target contains the host.
    private static func checkHost(in fields: HTTPFields, target: RequestTarget, isHTTP11: Bool) throws(Refusal) -> Authority? {
        if !isHTTP11, !fields.contains(.hostField) {
            switch target {
            case .absolute, .authority: return nil
            case .origin, .asterisk: throw .badRequest("no Host")
            }
        }
        let (host, port) = try HostField.parse(fields)
        return Authority(host: host, port: port)
    }

    /// RFC 9112 §6; CONNECT has no body, and the bytes that follow it belong to the tunnel (RFC 9110 §9.3.6).
    private static func checkFraming(method: String, fields: HTTPFields, isHTTP11: Bool) throws(Refusal) -> Framing {
        if method == "CONNECT", fields.contains(.contentLength) || fields.contains(.transferEncoding) {
            throw .badRequest("CONNECT with a body")
        }
        let framing: Framing
        do { framing = try Framing.declared(by: fields, allowsCoding: isHTTP11) ?? .none } catch { throw error.asRequestRefusal }
        // A body would have to be dropped: client libraries send none with HEAD, and origins treat it differently.
        guard method != "HEAD" || framing == .none || framing == .length(0) else { throw .badRequest("HEAD with a body") }
        return framing
    }

    /// RFC 9110 §10.1.1: only `100-continue` is supported.
    private static func checkExpectation(in fields: HTTPFields) throws(Refusal) {
        guard fields.contains(.expect) else { return }
        guard fields[values: .expect].allSatisfy({ Substring($0).trimmingOWS().lowercased() == "100-continue" }) else {
            throw Refusal(status: 417, problem: "expectation-failed", detail: "an expectation other than 100-continue")
        }
    }
}

/// Limits on the size and number of a client's messages and connections (docs/reference/configuration.md).
package struct ClientLimits: Hashable, Sendable {
    package var headBytes = ByteCount.kib(64)
    package var fieldBytes = ByteCount.kib(32)
    package var fields = 128
    package var targetBytes = ByteCount.kib(16)
    /// The minimum rate of a request body in bytes per second, once the time limit for a head has passed.
    package var bodyRate = ByteCount.kib(1)
    package var connections = 1024
    /// Exchanges under way over all connections: requests until their reply is sent, streams, tunnels.
    package var exchanges = 512
    /// Connections from one address of another machine.
    package var connectionsPerAddress = 128
    package var requestsPerConnection = 1000

    package init() {}
}

// MARK: - Responses

/// Semantic validation of upstream responses (RFC 9112 §4–§6; docs/security-model.md#response-gate).
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
