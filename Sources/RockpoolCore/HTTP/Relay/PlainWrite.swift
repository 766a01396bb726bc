// Recognises, without copying, a small write that may be sent by a relay (docs/architecture.md#relays; RFC 9112 §2–§6).

/// One strictly well-formed head of `POST`, `PUT` or `PATCH` over HTTP/1.1, as offsets into the received bytes, and the place of its body. It has
/// no condition, and no field that changes how it is treated (`PlainFields`), but for its type and its length.
///
package struct PlainWrite: Sendable {
    /// Maximum length of a body in bytes; longer ones are decoded.
    package static let bodyLimit = Int.kib(16)

    /// The method, and the target as it was received.
    package let method: Range<Int>
    package let target: Range<Int>
    /// The value of Host.
    package private(set) var host = 0..<0
    /// The other field lines, without `Content-Length`.
    package private(set) var lines = PlainLines()
    /// The head, with its blank line.
    package let head: Range<Int>
    /// The body. Many clients send it by itself, so that it may follow later.
    package let body: Range<Int>

    /// Parses the head at the start of `bytes`; nil if it is not plain, not complete, or beyond `limits`.
    package init?(_ bytes: Span<UInt8>, limits: ClientLimits) {
        guard let method = Self.methods.first(where: { $0.count < bytes.count && PlainFields.isExactly(bytes, at: 0..<$0.count, $0) })
        else {
            return nil
        }
        let end = min(bytes.count, FastPathRequest.byteLimit, Int(clamping: limits.headBytes.bytes))
        var scan = PlainScan(end: end, index: method.count)
        guard let target = scan.target(in: bytes), target.count <= limits.targetBytes.bytes, scan.version(in: bytes) else { return nil }
        self.method = 0..<(method.count - 1)
        self.target = target
        let lineLimit = min(PlainLines.limit + 1, limits.fields)
        var number = 0
        var length: Int?
        while !scan.blankLine(in: bytes) {
            let start = scan.index
            number += 1
            guard number <= lineLimit, let name = scan.name(in: bytes), let value = scan.value(in: bytes),
                scan.index - start <= limits.fieldBytes.bytes
            else { return nil }
            if name.count == Self.contentLength.count, PlainFields.isEqual(bytes, at: name.lowerBound, to: Self.contentLength) {
                guard length == nil, let declared = Self.number(bytes, value) else { return nil }
                length = declared
                continue
            }
            var kind = PlainLines.Kind.read
            switch PlainFields.role(of: bytes.extracting(name), value: bytes.extracting(value)) {
            case .host:
                guard host.isEmpty else { return nil }
                host = value
                continue
            case .credential: kind = .credential
            case .free: kind = .free
            case .none: guard !Self.isPages(bytes, name) else { return nil }
            case .decides: guard Self.isContentType(bytes, name) else { return nil }
            case .ifNoneMatch, .ifModifiedSince, .range: return nil
            }
            guard lines.append(name: name, value: value, kind) else { return nil }
        }
        guard !host.isEmpty, let length else { return nil }
        head = 0..<scan.index
        body = scan.index..<(scan.index + length)
    }

    private static let methods = ["POST ", "PUT ", "PATCH "].map { Array($0.utf8) }
    private static let contentLength = Array("content-length".utf8)
    private static let contentType = Array("content-type".utf8)
    private static let origin = Array("origin".utf8)

    private static func isContentType(_ bytes: Span<UInt8>, _ name: Range<Int>) -> Bool {
        name.count == contentType.count && PlainFields.isEqual(bytes, at: name.lowerBound, to: contentType)
    }

    /// True for `Origin`: what a page may write is decided anew for each request.
    private static func isPages(_ bytes: Span<UInt8>, _ name: Range<Int>) -> Bool {
        name.count == origin.count && PlainFields.isEqual(bytes, at: name.lowerBound, to: origin)
    }

    /// The number of bytes that a `Content-Length` declares; nil for no body, or one that is too long.
    private static func number(_ bytes: Span<UInt8>, _ value: Range<Int>) -> Int? {
        guard bytes[value.lowerBound] != UInt8(ascii: "0"), let number = RelayFields.length(value.map { bytes[$0] }), number <= bodyLimit
        else { return nil }
        return Int(number)
    }

    /// The bytes of the whole request.
    package var length: Int { body.upperBound }
}
