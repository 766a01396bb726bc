// Plain requests and small writes read without copying, by what a decision about them looks at: requests that agree in it are treated alike
// (docs/architecture.md#relays).
package import HTTPTypes

/// The parts of a plain request that its treatment depends on, but for the facts that are looked up for each: the listener and whether the client
/// is local, `Host`, and the lines that are not `PlainLines.Kind.free`.
package struct RequestShape: Hashable, Sendable {
    /// Where a request came in.
    package struct Arrival: Sendable {
        let listener: String
        let isLocalClient: Bool

        package init(listener: String, isLocalClient: Bool) { (self.listener, self.isLocalClient) = (listener, isLocalClient) }
    }

    private var bytes: [UInt8] = []

    /// A read. Its credential counts by the names of its fields.
    /// - Parameter path: where path and query lie, if any target may take their place; nil if the target counts.
    package init(of request: FastPathRequest, in bytes: Span<UInt8>, at arrival: Arrival, path: Range<Int>?) {
        let target = path.map { request.target.lowerBound..<$0.lowerBound } ?? request.target
        self.init(at: arrival, [target, request.host], request.lines, in: bytes, countsCredentials: false)
    }

    /// A write, with its target and its credential.
    package init(of write: PlainWrite, in bytes: Span<UInt8>, at arrival: Arrival) {
        self.init(at: arrival, [write.method, write.target, write.host], write.lines, in: bytes, countsCredentials: true)
    }

    private init(at arrival: Arrival, _ parts: [Range<Int>], _ lines: PlainLines, in bytes: Span<UInt8>, countsCredentials: Bool) {
        self.bytes.reserveCapacity(256)
        self.bytes.append(arrival.isLocalClient ? 1 : 0)
        self.bytes += arrival.listener.utf8
        for part in parts {
            self.bytes.append(0x0A)
            self.bytes.append(bytes, part)
        }
        for index in 0..<lines.count {
            switch lines.kind(at: index) {
            case .free: continue
            case .key,
                .credential where !countsCredentials:
                self.bytes.append(0x0A)
                self.bytes.append(bytes, lines.name(at: index))
            case .read, .credential:
                self.bytes.append(0x0A)
                self.bytes.append(bytes, lines.whole(at: index))
            }
        }
    }
}

extension FastPathRequest {
    /// The range of path and query; nil for one of Rockpool's own paths, and for a target that names no resource.
    package func path(in bytes: Span<UInt8>) -> Range<Int>? {
        var start = target.lowerBound
        if bytes[start] != UInt8(ascii: "/") {
            // The absolute form: the path follows the authority.
            start += Self.scheme.count
            while start < target.upperBound, bytes[start] != UInt8(ascii: "/"), bytes[start] != UInt8(ascii: "?") { start += 1 }
            guard start < target.upperBound, bytes[start] == UInt8(ascii: "/") else { return nil }
        }
        let path = start..<target.upperBound
        return path.count >= Self.own.count && PlainFields.isEqual(bytes, at: start, to: Self.own) ? nil : path
    }

    private static let scheme = Array("http://".utf8)
    private static let own = Array(RequestTarget.ownPath.utf8)

    /// True for a request for a part, or on a condition.
    package var isPartial: Bool { !ifNoneMatch.isEmpty || !ifModifiedSince.isEmpty || !range.isEmpty }
}

/// How the field lines of a request become those that are sent: each line that the decision looked at is replaced by what was sent for it, and
/// all others are passed on in their order, byte for byte.
package struct OutboundLines: Sendable {
    /// What is sent in the place of each line that the decision looked at, in their order.
    private let read: [[UInt8]]
    private let after: [UInt8]

    /// Nil if a line that decisions do not look at was not passed on as it was.
    /// - Parameters:
    ///   - lines: of a request.
    ///   - sent: the lines that were sent for it, with their ends, without `Host`.
    package init?(_ lines: PlainLines, in bytes: Span<UInt8>, sent: [[UInt8]]) {
        var (read, rest) = ([[UInt8]](), sent[...])
        for index in 0..<lines.count {
            let isSent = rest.first.map { PlainFields.isExactly(bytes, at: lines.whole(at: index), $0) } ?? false
            switch lines.kind(at: index) {
            case .read:
                let name = lines.name(at: index)
                let isReplaced = rest.first.map {
                    $0.count > name.count && $0[name.count] == UInt8(ascii: ":") && bytes.extracting(name).isName($0)
                }
                read.append(isSent || isReplaced == true ? rest.removeFirst() : [])
            case .free, .key, .credential:
                guard isSent else { return nil }
                rest.removeFirst()
            }
        }
        self.read = read
        after = rest.flatMap(\.self)
    }

    /// Appends the lines that are sent for a request of the same shape.
    package func write(_ lines: PlainLines, in bytes: Span<UInt8>, to out: inout [UInt8]) {
        var place = 0
        for index in 0..<lines.count {
            guard lines.kind(at: index) == .read else {
                out.append(bytes, lines.whole(at: index))
                continue
            }
            if place < read.count { out += read[place] }
            place += 1
        }
        out += after
    }
}

extension Span<UInt8> {
    /// True if these bytes are the beginning of `line`, in any case.
    fileprivate func isName(_ line: [UInt8]) -> Bool {
        for index in indices where FieldByte.lowercased(self[index]) != FieldByte.lowercased(line[index]) { return false }
        return true
    }
}

extension [UInt8] {
    /// Appends a part of `bytes`.
    mutating func append(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        unsafe bytes.extracting(range).withUnsafeBytes { part in unsafe append(contentsOf: part) }
    }
}

/// The lines of a plain head in their order, without `Host` and the framing. Offsets fit into 16 bits, because longer heads are decoded.
package struct PlainLines: Sendable {
    /// What the decision about a request makes of a line.
    package enum Kind: Sendable {
        /// The decision may depend on it.
        case read
        /// No decision depends on it: it is passed on.
        case free
        /// The key of a write: its presence counts, and its value is passed on.
        case key
        /// It may identify the principal, or selects.
        case credential

        /// True if requests of one shape differ in it.
        package var isOwn: Bool { self == .free || self == .key }
    }

    private struct Line {
        var name: UInt16 = 0
        var nameEnd: UInt16 = 0
        var valueEnd: UInt16 = 0
    }

    /// Maximum number of lines; heads with more are decoded.
    package static let limit = 32

    private var lines = InlineArray<32, Line>(repeating: Line())
    package private(set) var count = 0
    /// One bit for each line.
    private var credentials: UInt32 = 0
    private var free: UInt32 = 0
    private var keys: UInt32 = 0

    /// - Returns: false if there is no room for the line.
    mutating func append(name: Range<Int>, value: Range<Int>, _ kind: Kind) -> Bool {
        guard count < Self.limit else { return false }
        switch kind {
        case .read: break
        case .free: free |= 1 << UInt32(count)
        case .key: keys |= 1 << UInt32(count)
        case .credential: credentials |= 1 << UInt32(count)
        }
        lines[count] = Line(name: UInt16(name.lowerBound), nameEnd: UInt16(name.upperBound), valueEnd: UInt16(value.upperBound))
        count += 1
        return true
    }

    // MARK: - One line

    package func kind(at index: Int) -> Kind {
        let bit: UInt32 = 1 << UInt32(index)
        return free & bit != 0 ? .free : credentials & bit != 0 ? .credential : keys & bit != 0 ? .key : .read
    }

    package func name(at index: Int) -> Range<Int> { Int(lines[index].name)..<Int(lines[index].nameEnd) }

    package func value(at index: Int) -> Range<Int> { (Int(lines[index].nameEnd) + 2)..<Int(lines[index].valueEnd) }

    /// The line from its name to its end: CR and LF.
    package func whole(at index: Int) -> Range<Int> { Int(lines[index].name)..<(Int(lines[index].valueEnd) + 2) }

    // MARK: - Credentials

    package var hasCredential: Bool { credentials != 0 }

    /// True if a field occurs twice that two recipients could read differently then (`RequestGate`).
    func repeatsSingleton(in bytes: Span<UInt8>) -> Bool {
        keys.nonzeroBitCount > 1 || credentials.nonzeroBitCount > 1 && value(of: Self.authorization, in: bytes)?.isEmpty == true
    }

    private static let authorization = Array(HTTPField.Name.authorization.canonicalName.utf8)

    /// The lines of the fields that may identify the principal, from the name to the end of the value, in order.
    package var credentialLines: [Range<Int>] {
        (0..<count).compactMap { kind(at: $0) == .credential ? Int(lines[$0].name)..<Int(lines[$0].valueEnd) : nil }
    }

    /// True if the lines of the fields that may identify the principal, one after the other, are `expected`.
    package func hasCredential(_ expected: [UInt8], in bytes: Span<UInt8>) -> Bool {
        var position = 0
        for index in 0..<count where credentials & 1 << UInt32(index) != 0 {
            for place in Int(lines[index].name)..<Int(lines[index].valueEnd) {
                guard position < expected.count, bytes[place] == expected[position] else { return false }
                position += 1
            }
            guard position < expected.count, expected[position] == 0x0A else { return false }
            position += 1
        }
        return position == expected.count
    }

    // MARK: - One name

    /// The range of the value of the field with this lower-case name: nil if it is absent, empty if it is repeated.
    package func value(of name: [UInt8], in bytes: Span<UInt8>) -> Range<Int>? {
        var found: Range<Int>?
        for index in 0..<count {
            let line = lines[index]
            let start = Int(line.name)
            guard Int(line.nameEnd) - start == name.count, PlainFields.isEqual(bytes, at: start, to: name) else { continue }
            if found != nil { return 0..<0 }
            found = Int(line.nameEnd) + 2..<Int(line.valueEnd)
        }
        return found
    }
}

/// Makes fields of lines. Most requests of a shape have the same names in the same places, which then need not be parsed again.
package struct PlainLineNames: Sendable {
    private let names: [(bytes: [UInt8], name: HTTPField.Name)?]

    /// - Parameter lines: of an example.
    package init(of lines: PlainLines, in bytes: Span<UInt8>) {
        names = (0..<lines.count).map { index in
            var name: [UInt8] = []
            name.append(bytes, lines.name(at: index))
            return HTTPField.Name(String(decoding: name, as: UTF8.self)).map { (name, $0) }
        }
    }

    /// Returns the fields of these kinds, in their order.
    package func fields(of lines: PlainLines, in bytes: Span<UInt8>, _ kinds: PlainLines.Kind...) -> [HTTPField] {
        (0..<lines.count).compactMap { index in
            guard kinds.contains(lines.kind(at: index)), let name = name(at: index, of: lines, in: bytes) else { return nil }
            return HTTPField(name: name, value: Self.text(bytes, lines.value(at: index)))
        }
    }

    private func name(at index: Int, of lines: PlainLines, in bytes: Span<UInt8>) -> HTTPField.Name? {
        let range = lines.name(at: index)
        if index < names.count, let known = names[index], PlainFields.isExactly(bytes, at: range, known.bytes) { return known.name }
        return HTTPField.Name(Self.text(bytes, range))
    }

    private static func text(_ bytes: Span<UInt8>, _ range: Range<Int>) -> String {
        unsafe bytes.extracting(range).withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
    }
}

extension HTTPField.Name {
    /// What the decision about a plain request makes of a line with this name.
    package var plainKind: PlainLines.Kind {
        switch PlainFields.role(of: canonicalName.utf8.span, value: [UInt8]().span) {
        case .free: .free
        case .key: .key
        case .credential: .credential
        case .host, .ifNoneMatch, .ifModifiedSince, .range, .decides, .none: .read
        }
    }
}

/// One strictly well-formed head of `POST`, `PUT` or `PATCH` over HTTP/1.1, as offsets into the received bytes, and the place of its body
/// (RFC 9112 §2–§6). It has no condition, and no field that changes how it is treated (`PlainFields`), but for its type, length and key.
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
            case .key: kind = .key
            case .decides: guard Self.isContentType(bytes, name) else { return nil }
            case .ifNoneMatch, .ifModifiedSince, .range: return nil
            }
            guard lines.append(name: name, value: value, kind) else { return nil }
        }
        guard !host.isEmpty, let length, !lines.repeatsSingleton(in: bytes) else { return nil }
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
