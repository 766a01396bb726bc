// Recognises, without copying, the one form of request that can be answered from a stored reply before decoding (RFC 9112 §2–§5).

/// One complete, strictly well-formed head of `GET` or `HEAD` over HTTP/1.1 without a body, as offsets into the received bytes.
///
/// Recognition is stricter than the decoder and `RequestGate` in every point but one; an unrecognised request is passed on unchanged and
/// handled by them. The exception: the content of target and Host is not validated, because a stored reply is found by their exact
/// bytes, which have passed the gate before. The response to a recognised request depends only on its target, its Host, its credential, its
/// condition, its range and the fields named by `Vary`, because it carries no other field that influences the response (`PlainFields`).
package struct FastPathRequest: Sendable {
    /// Longer heads are decoded. Offsets fit into 16 bits.
    package static let byteLimit = Int.kib(8)
    /// True for `HEAD`.
    package private(set) var isHead = false
    /// Length of the head in bytes, including its blank line.
    package private(set) var length = 0
    /// The request target: origin form, or absolute form with `http`.
    package private(set) var target = 0..<0
    /// The value of Host.
    package private(set) var host = 0..<0
    /// The value of `If-None-Match`; empty without one.
    package private(set) var ifNoneMatch = 0..<0
    /// The value of `If-Modified-Since`; empty without one.
    package private(set) var ifModifiedSince = 0..<0
    /// The value of `Range`; empty without one.
    package private(set) var range = 0..<0
    /// The other field lines.
    package private(set) var lines = PlainLines()

    /// Parses the head at the start of `bytes`; nil if it is not plain, not complete, or beyond `limits`.
    package init?(_ bytes: Span<UInt8>, limits: ClientLimits) {
        guard bytes.count >= 16 else { return nil }
        isHead = bytes.word(at: 0) & 0xFF_FFFF_FFFF == Self.head
        guard isHead || bytes.word(at: 0) & 0xFFFF_FFFF == Self.get else { return nil }
        let end = min(bytes.count, Self.byteLimit, Int(clamping: limits.headBytes.bytes))
        var scan = PlainScan(end: end, index: isHead ? 5 : 4)
        guard let target = scan.target(in: bytes), target.count <= limits.targetBytes.bytes, scan.version(in: bytes) else { return nil }
        self.target = target
        // Host counts as a field too, as in the gate.
        let lineLimit = min(PlainLines.limit + 1, limits.fields)
        var number = 0
        while !scan.blankLine(in: bytes) {
            let start = scan.index
            number += 1
            guard number <= lineLimit, let name = scan.name(in: bytes), let value = scan.value(in: bytes),
                scan.index - start <= limits.fieldBytes.bytes
            else { return nil }
            var kind = PlainLines.Kind.read
            switch PlainFields.role(of: bytes.extracting(name), value: bytes.extracting(value)) {
            case .decides, .key: return nil
            case .host:
                guard Self.set(&host, to: value) else { return nil }
                continue
            case .ifNoneMatch: guard Self.set(&ifNoneMatch, to: value) else { return nil }
            case .ifModifiedSince: guard Self.set(&ifModifiedSince, to: value) else { return nil }
            case .range: guard Self.set(&range, to: value) else { return nil }
            case .credential: kind = .credential
            case .free: kind = .free
            case .none: break
            }
            guard lines.append(name: name, value: value, kind) else { return nil }
        }
        guard !host.isEmpty, !lines.repeatsSingleton(in: bytes) else { return nil }
        length = scan.index
    }

    /// Sets the value of a field; false if the field occurs twice.
    private static func set(_ place: inout Range<Int>, to value: Range<Int>) -> Bool {
        guard place.isEmpty else { return false }
        place = value
        return true
    }

    /// `GET ` and `HEAD `, their first bytes the least significant.
    private static let get: UInt64 = 0x2054_4547
    private static let head: UInt64 = 0x20_4441_4548

    /// True if a field may identify the principal.
    package var hasCredential: Bool { lines.hasCredential }

    /// The range of the value of the field with this lower-case name: nil if it is absent, empty if it is repeated.
    package func value(of name: [UInt8], in bytes: Span<UInt8>) -> Range<Int>? { lines.value(of: name, in: bytes) }
}

/// Scans a head from left to right. Every step fails at the first unexpected byte.
struct PlainScan {
    let end: Int
    var index: Int

    /// `target SP`: a path, or an absolute `http` URI, of the bytes RFC 3986 allows.
    mutating func target(in bytes: Span<UInt8>) -> Range<Int>? {
        let start = index
        while index < end, PlainByte.isTarget(bytes[index]) { index += 1 }
        guard index < end, bytes[index] == 0x20, index > start else { return nil }
        let target = start..<index
        index += 1
        if bytes[start] == UInt8(ascii: "/") { return target }
        return target.count >= 8 && bytes.word(at: start) & 0x00FF_FFFF_FFFF_FFFF == Self.http ? target : nil
    }

    /// `HTTP/1.1 CR LF`.
    mutating func version(in bytes: Span<UInt8>) -> Bool {
        guard end - index >= 10, bytes.word(at: index) == Self.version else { return false }
        index += 8
        return lineEnd(in: bytes)
    }

    mutating func blankLine(in bytes: Span<UInt8>) -> Bool {
        guard end - index >= 2, bytes[index] == 0x0D, bytes[index + 1] == 0x0A else { return false }
        index += 2
        return true
    }

    /// `token ":" SP`.
    mutating func name(in bytes: Span<UInt8>) -> Range<Int>? {
        let start = index
        while index < end, PlainByte.isToken(bytes[index]) { index += 1 }
        let name = start..<index
        guard !name.isEmpty, end - index > 2, bytes[index] == UInt8(ascii: ":"), bytes[index + 1] == 0x20 else { return nil }
        index += 2
        return name
    }

    /// Visible ASCII with spaces only inside, then CR LF.
    mutating func value(in bytes: Span<UInt8>) -> Range<Int>? {
        let start = index
        while end - index >= 8, PlainByte.areText(bytes.word(at: index)) { index += 8 }
        while index < end, PlainByte.isText(bytes[index]) { index += 1 }
        let value = start..<index
        guard !value.isEmpty, bytes[start] != 0x20, bytes[index - 1] != 0x20, lineEnd(in: bytes) else { return nil }
        return value
    }

    private mutating func lineEnd(in bytes: Span<UInt8>) -> Bool { blankLine(in: bytes) }

    /// `HTTP/1.1` and `http://`, their first bytes the least significant.
    private static let version: UInt64 = 0x312E_312F_5054_5448
    private static let http: UInt64 = 0x002F_2F3A_7074_7468
}

extension Span<UInt8> {
    /// The eight bytes from `index` on, the first one the least significant. `index + 8` must be within the span.
    @inline(__always) fileprivate func word(at index: Int) -> UInt64 {
        UInt64(littleEndian: unsafe bytes.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self))
    }
}

/// Classes of bytes in a head, one bit per ASCII character: two constants, where a table would cost a memory load per byte.
enum PlainByte {
    /// `tchar` (RFC 9110 §5.6.2).
    @inline(__always) static func isToken(_ byte: UInt8) -> Bool {
        holds(low: 0x03FF_6CFA_0000_0000, high: 0x57FF_FFFF_C7FF_FFFE, byte: byte)
    }
    /// The bytes that the gate permits in a target.
    @inline(__always) static func isTarget(_ byte: UInt8) -> Bool {
        holds(low: 0xAFFF_FFF2_0000_0000, high: 0x47FF_FFFE_AFFF_FFFF, byte: byte)
    }
    @inline(__always) static func isText(_ byte: UInt8) -> Bool { byte >= 0x20 && byte <= 0x7E }

    @inline(__always) private static func holds(low: UInt64, high: UInt64, byte: UInt8) -> Bool {
        byte < 0x80 && (byte < 0x40 ? low : high) & (1 << UInt64(byte & 63)) != 0
    }

    /// True if all eight bytes are from space to tilde. A borrow in the subtraction can only cause a false negative.
    @inline(__always) static func areText(_ word: UInt64) -> Bool {
        let high: UInt64 = 0x8080_8080_8080_8080
        let isControl = word &- 0x2020_2020_2020_2020
        let isDelete = (word ^ 0x7F7F_7F7F_7F7F_7F7F) &- 0x0101_0101_0101_0101
        return (word | isControl | isDelete) & high == 0
    }
}
