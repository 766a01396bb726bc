// What ends a message, and which fields belong to one connection only (RFC 9112 §6, RFC 9110 §7.6.1; docs/security-model.md#one-framing).
package import HTTPTypes

/// The framing of a message body, which determines its end.
package enum Framing: Hashable, Sendable {
    /// There is no body.
    case none
    /// The number of bytes given by Content-Length.
    case length(Int64)
    /// The chunked transfer coding without any other coding.
    case chunked
}

extension Framing {
    /// The rule of RFC 9112 §6.1 or §6.3 that a head violates.
    enum Fault: Error, Hashable, Sendable {
        case lengthAndCoding, repeatedCoding, malformedCoding, unknownCoding, codingBeforeHTTP11
        case repeatedLength, malformedLength, lengthTooLarge
    }

    /// The declared framing; nil if the fields declare none. Stricter than the RFC: one field, one value, never both fields, because with
    /// leniency two recipients may disagree about where a message ends.
    static func declared(by fields: HTTPFields, allowsCoding: Bool) throws(Fault) -> Framing? {
        guard fields.contains(.contentLength) || fields.contains(.transferEncoding) else { return nil }
        let codings = fields[values: .transferEncoding]
        let lengths = fields[values: .contentLength]
        if let coding = codings.first {
            guard lengths.isEmpty else { throw .lengthAndCoding }
            guard allowsCoding else { throw .codingBeforeHTTP11 }
            guard codings.count == 1 else { throw .repeatedCoding }
            try checkCoding(coding)
            return .chunked
        }
        guard let length = lengths.first else { return nil }
        guard lengths.count == 1 else { throw .repeatedLength }
        return .length(try contentLength(length))
    }

    /// Accepts `chunked`. A well-formed list that ends in it names a coding that is not implemented (501); anything else is malformed
    /// (400).
    private static func checkCoding(_ value: String) throws(Fault) {
        let elements = value.split(separator: ",", omittingEmptySubsequences: false).map { $0.trimmingOWS().lowercased() }
        if elements == ["chunked"] { return }
        let isList = elements.allSatisfy { HTTPField.Name($0) != nil }
        throw isList && elements.last == "chunked" && !elements.dropLast().contains("chunked") ? .unknownCoding : .malformedCoding
    }

    /// `1*DIGIT` (RFC 9110 §8.6); leading zeros are allowed.
    private static func contentLength(_ value: String) throws(Fault) -> Int64 {
        let digits = Substring(value).trimmingOWS()
        guard digits.isDigits else { throw .malformedLength }
        guard let length = Int64(digits), length <= ByteCount.longestBody.bytes else { throw .lengthTooLarge }
        return length
    }
}

extension Framing.Fault {
    /// The fault in words.
    var description: String {
        switch self {
        case .lengthAndCoding: "Content-Length beside Transfer-Encoding"
        case .repeatedCoding: "more than one Transfer-Encoding"
        case .malformedCoding: "Transfer-Encoding is not chunked"
        case .unknownCoding: "a transfer coding other than chunked"
        case .codingBeforeHTTP11: "Transfer-Encoding in an HTTP/1.0 message"
        case .repeatedLength: "more than one Content-Length"
        case .malformedLength: "Content-Length is not a number"
        case .lengthTooLarge: "Content-Length is beyond 2^53"
        }
    }

    /// The response to a request with this fault.
    var asRequestRefusal: Refusal {
        switch self {
        case .unknownCoding: Refusal(status: 501, problem: "not-implemented", detail: description)
        case .lengthTooLarge: Refusal(status: 413, problem: "body-too-large", detail: description)
        default: .badRequest(description)
        }
    }
}

/// Fields of one hop (RFC 9110 §7.6.1, §11.7).
package enum HopByHop {
    /// The end-to-end fields. Removed are the fields listed in Connection, those of the connection itself, those between a client and its
    /// proxy (RFC 9110 §11.7), and Content-Length, because every hop sets the framing anew. An end-to-end field stays even if Connection
    /// lists it: `Connection: Cache-Control` must not remove `no-store`.
    package static func stripped(_ fields: HTTPFields) -> HTTPFields {
        let listed = options(in: fields).filter { !isForEveryone($0) }
        var kept = HTTPFields()
        kept.reserveCapacity(fields.count)
        for field in fields where !ofTheHop.contains(field.name) && !listed.contains(field.name) { kept.append(field) }
        return kept
    }

    /// The end-to-end fields of an upstream's response, without `Rockpool-*` fields, which clients would take for this proxy's own. The
    /// origin's targeted field `Rockpool-Cache-Control` stays (RFC 9213 §2).
    package static func stripped(answer fields: HTTPFields) -> HTTPFields {
        var kept = stripped(fields)
        for field in fields where isOurs(field.name.canonicalName) { kept[field.name] = nil }
        return kept
    }

    private static func isOurs(_ name: String) -> Bool { name.hasPrefix("rockpool-") && name != "rockpool-cache-control" }

    /// Throws a 400 if Connection lists a field that is meant for all recipients (docs/reference/headers.md#connection): the sender would
    /// make a proxy drop that
    /// field.
    package static func checkConnection(in fields: HTTPFields) throws(Refusal) {
        if let name = options(in: fields).first(where: isForEveryone) {
            throw .badRequest("Connection names \(name.rawName), which is not a field of one connection")
        }
    }

    /// The connection options of all Connection fields that are valid field names.
    static func options(in fields: HTTPFields) -> [HTTPField.Name] {
        guard fields.contains(.connection) else { return [] }
        return fields[values: .connection].flatMap { value in
            value.split(separator: ",").compactMap { HTTPField.Name(String($0.trimmingOWS())) }
        }
    }

    private static let ofTheHop: Set<HTTPField.Name> = [
        .connection, .keepAlive, .proxyConnection, .te, .trailer, .transferEncoding, .upgrade, .http2Settings, .contentLength,
        .proxyAuthorization, .proxyAuthenticate, .proxyAuthenticationInfo,
    ]

    private static func isForEveryone(_ name: HTTPField.Name) -> Bool {
        endToEnd.contains(name) || endToEndPrefixes.contains { name.canonicalName.hasPrefix($0) }
    }

    private static let endToEndPrefixes = ["if-", "content-", "rockpool-"]
    private static let endToEnd: Set<HTTPField.Name> = [
        .hostField, .transferEncoding, .authorization, .cookie, .cacheControl, .range, .expect, .idempotencyKey, .via, .cdnLoop,
        .maxForwards, .age, .date, .eTag, .expires, .lastModified, .location, .setCookie, .vary, .wwwAuthenticate,
    ]
}

/// The fields after a body.
package enum Trailers {
    /// The request field that announces trailers, without any other option of the hop, for a call of gRPC, which fails without it; nil for
    /// any other request: `TE` concerns one connection only (RFC 9110 §10.1.4).
    package static func accepted(_ fields: HTTPFields) -> String? {
        guard fields[.contentType]?.lowercased().hasPrefix("application/grpc") == true else { return nil }
        let options = fields[values: .te].flatMap { FieldList.members(of: $0) }
        return options.contains { $0.lowercased() == "trailers" } ? "trailers" : nil
    }

    /// Trailers without the fields that must precede the body: framing, routing, conditions, caching, authentication
    /// (RFC 9110 §6.5.1).
    package static func forwardable(_ fields: HTTPFields) -> HTTPFields {
        var kept = HTTPFields()
        for field in HopByHop.stripped(answer: fields) where !isBound(field.name.canonicalName) { kept.append(field) }
        return kept
    }

    private static func isBound(_ name: String) -> Bool {
        name.hasPrefix("content-") && name != "content-digest" || name.hasPrefix("if-") || name.hasPrefix("proxy-") || bound.contains(name)
    }

    private static let bound: Set<String> = [
        "host", "authorization", "www-authenticate", "set-cookie", "cookie", "cache-control", "expires", "age", "date", "vary", "location",
        "range", "accept-ranges", "retry-after", "via", "cache-status", "max-forwards", "expect", "pragma", "warning",
    ]
}
