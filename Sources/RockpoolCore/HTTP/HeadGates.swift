// Validates a decoded request head by the rules that the HTTP parser does not check (RFC 9110, RFC 9112 §2–§6;
// docs/security-model.md#request-gate).
package import HTTPTypes

/// Semantic validation after the decoder, which has already rejected invalid bytes.
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
}

extension RequestGate {
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
