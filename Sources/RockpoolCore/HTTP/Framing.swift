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
        return areAccepted(by: fields) ? "trailers" : nil
    }

    /// True for a request whose client takes trailers (RFC 9110 §10.1.4).
    package static func areAccepted(by fields: HTTPFields) -> Bool {
        fields.contains(.te) && fields[values: .te].contains { FieldList.members(of: $0).contains { $0.lowercased() == "trailers" } }
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

// MARK: - Chunks

/// Decodes the raw bytes of one chunked body (RFC 9112 §7.1, §11.1).
package struct ChunkReader: Sendable {
    private enum Place { case size, padding, extensions, sizeEnd, data, dataEnd, dataLineEnd, trailers, trailer, trailerEnd, lastEnd, end }

    private var place = Place.size
    private var digits = 0
    private var size: UInt64 = 0
    /// Remaining bytes of the current chunk's data.
    private var left: UInt64 = 0
    /// The lines after the last chunk, each with its line end.
    package private(set) var trailers: [[UInt8]] = []
    private var trailer: [UInt8] = []
    /// Limits the bytes that are not data.
    private var meter = ChunkMeter()

    /// Starts at the beginning of a body.
    package init() {}

    /// True once the last chunk and the trailers have been read.
    package var isEnded: Bool { place == .end }

    /// Reads `bytes` and calls `data` with each range of body data in order. Bytes after the end of the body are not read.
    ///
    /// - Returns: the number of bytes read.
    ///
    /// Throws `Refusal` (502) for a byte that the syntax does not allow at its position.
    @discardableResult
    package mutating func read(_ bytes: Span<UInt8>, _ data: (Range<Int>) -> Void) throws(Refusal) -> Int {
        do { _ = try meter.read(bytes) } catch { throw .badGateway(error.detail) }
        var index = 0
        while index < bytes.count, place != .end {
            if place == .data {
                let count = Int(min(left, UInt64(bytes.count - index)))
                data(index..<index + count)
                (left, index) = (left - UInt64(count), index + count)
                if left == 0 { place = .dataEnd }
                continue
            }
            try step(bytes[index])
            index += 1
        }
        return index
    }

    private mutating func step(_ byte: UInt8) throws(Refusal) {
        switch place {
        case .size:
            if let digit = ChunkMeter.digit(byte) {
                (size, digits) = (size << 4 | digit, digits + 1)
            } else {
                try require(digits > 0, otherwise: "a chunk without a size")
                place = try afterSize(byte)
            }
        case .padding: place = try afterSize(byte)
        case .extensions: place = byte == 0x0D ? .sizeEnd : try text(byte, place: .extensions)
        case .sizeEnd:
            try lineFeed(byte)
            (left, place) = (size, size > 0 ? .data : .trailers)
        case .dataEnd:
            try require(byte == 0x0D, otherwise: "a chunk is longer than its size, or its data does not end with CRLF")
            place = .dataLineEnd
        case .dataLineEnd: (place, size, digits) = (try lineFeed(byte, then: .size), 0, 0)
        case .trailers:
            place = byte == 0x0D ? .lastEnd : try text(byte, place: .trailer)
            trailer = [byte]
        case .trailer:
            place = byte == 0x0D ? .trailerEnd : try text(byte, place: .trailer)
            trailer.append(byte)
        case .trailerEnd:
            place = try lineFeed(byte, then: .trailers)
            trailers.append(trailer + [byte])
        case .lastEnd: place = try lineFeed(byte, then: .end)
        case .data, .end: break
        }
    }

    /// Some servers pad the size with spaces; nothing else may stand between the size and its extensions.
    private func afterSize(_ byte: UInt8) throws(Refusal) -> Place {
        switch byte {
        case 0x20, 0x09: return .padding
        case 0x3B: return .extensions
        case 0x0D: return .sizeEnd
        default: throw .badGateway("a chunk's size is no hexadecimal number, or its line ends without CRLF")
        }
    }

    private func lineFeed(_ byte: UInt8) throws(Refusal) { try require(byte == 0x0A, otherwise: "a CR without LF in the chunked framing") }

    private func lineFeed(_ byte: UInt8, then next: Place) throws(Refusal) -> Place {
        try lineFeed(byte)
        return next
    }

    private func text(_ byte: UInt8, place: Place) throws(Refusal) -> Place {
        try require(
            byte >= 0x20 && byte != 0x7F || byte == 0x09, otherwise: "a line of the chunked framing ends without CRLF, or holds a control")
        return place
    }

    private func require(_ isMet: Bool, otherwise: String) throws(Refusal) {
        guard isMet else { throw .badGateway(otherwise) }
    }
}

/// Tracks the chunked framing of one body in parallel to the validating parser, to enforce two limits that the parser lacks
/// (docs/security-model.md#chunked-bodies, row 2; CVE-2023-39326).
package struct ChunkMeter: Hashable, Sendable {
    /// Bytes of chunk sizes, extensions and trailers in excess of what chunks of a reasonable length need.
    package static let overheadLimit = Int.kib(16)
    /// The maximum size of one chunk, equal to that of a Content-Length.
    private static let sizeLimit = UInt64(ByteCount.longestBody.bytes)
    /// Overhead bytes that a chunk may have without counting as excess, in addition to twice its data.
    private static let free = 16

    private enum Place: Hashable { case size, extensions, data, dataEnd, trailers }

    private var place = Place.size
    private var size: UInt64 = 0
    /// Remaining bytes of the current chunk's data.
    private var left: UInt64 = 0
    /// Length of the current line.
    private var line = 0
    private var excess = 0
    /// True once the last chunk and the trailers have been read.
    package private(set) var isEnded = false

    /// Starts at the beginning of a body.
    package init() {}

    /// Reads up to the end of the body. Returns the number of bytes that belong to it; throws a 413 if a limit is exceeded.
    package mutating func read(_ bytes: Span<UInt8>) throws(Refusal) -> Int {
        var index = 0
        while index < bytes.count, !isEnded {
            if place == .data {
                let count = Int(min(left, UInt64(bytes.count - index)))
                (left, index) = (left - UInt64(count), index + count)
                if left == 0 { place = .dataEnd }
                continue
            }
            try step(bytes[index])
            index += 1
        }
        return index
    }

    private mutating func step(_ byte: UInt8) throws(Refusal) {
        line += 1
        guard excess + line <= Self.overheadLimit + Self.free else {
            throw .tooLarge(detail: "the chunks' extensions and trailers are longer than \(Self.overheadLimit) bytes")
        }
        let isLineEnd = byte == 0x0A
        switch place {
        case .size:
            if let digit = Self.digit(byte) {
                size = size << 4 | digit
                guard size <= Self.sizeLimit else { throw .tooLarge(detail: "a chunk is beyond 2^53 bytes") }
            } else {
                place = .extensions
            }
            if isLineEnd { begin() }
        case .extensions: if isLineEnd { begin() }
        case .dataEnd: if isLineEnd { (place, line) = (.size, 0) }
        case .trailers:
            guard isLineEnd else { return }
            isEnded = line <= 2
            excess += line
            line = 0
        case .data: break
        }
    }

    /// Called at the end of the line with the size.
    private mutating func begin() {
        guard size > 0 else {
            (excess, line, place) = (excess + line, 0, .trailers)
            return
        }
        let paid = Self.free + 2 * Int(clamping: min(size, UInt64(Self.overheadLimit)))
        excess = max(0, excess + line + 2 - paid)
        (left, size, line, place) = (size, 0, 0, .data)
    }

    static func digit(_ byte: UInt8) -> UInt64? {
        switch byte {
        case 0x30...0x39: UInt64(byte - 0x30)
        case 0x41...0x46: UInt64(byte - 0x41 + 10)
        case 0x61...0x66: UInt64(byte - 0x61 + 10)
        default: nil
        }
    }
}

extension Refusal {
    fileprivate static func tooLarge(detail: String) -> Refusal { Refusal(status: 413, problem: "body-too-large", detail: detail) }
}
