// WARC files: parsed in pieces, within limits, to heads, blocks and record ends (ISO 28500:2017).
package import HTTPTypes

/// The state machine that splits a WARC file into records; buffers at most one head (ISO 28500:2017 §4).
package struct WARCReader: Sendable {
    /// The limits of a WARC file; a file beyond them is rejected.
    package struct Limits: Hashable, Sendable {
        /// Bytes of all lines of one record's head.
        package var headBytes = ByteCount.kib(64)
        /// Named fields of one head.
        package var fields = 128
        /// Bytes of one block. Blocks are never buffered, but an implausible length indicates a broken record.
        package var blockBytes = ByteCount.mb(1_000_000)

        /// The default limits.
        package init() {}
    }

    /// The next parsed element.
    package enum Event: Hashable, Sendable {
        case head(WARCHead)
        /// The next bytes of the record's block, never empty.
        case block(ArraySlice<UInt8>)
        /// The record is complete.
        case end
    }

    private enum State: Hashable {
        case head([UInt8])
        case block(left: Int64)
        /// The number of bytes received of the four after a block.
        case gap(Int)
    }

    private let limits: Limits
    private var state = State.head([])
    /// Complete records so far.
    package private(set) var records = 0

    /// A parser at the start of a file.
    package init(limits: Limits = Limits()) { self.limits = limits }

    /// The number of the current record, counted from 1.
    package var current: Int { records + 1 }

    /// The next element of the file; nil once all of `rest` is consumed and more bytes are needed.
    ///
    /// Throws at the first byte that WARC does not allow there.
    package mutating func next(in rest: inout ArraySlice<UInt8>) throws(WARCFault) -> Event? {
        while !rest.isEmpty {
            if let event = try step(&rest) { return event }
        }
        return nil
    }

    private mutating func step(_ rest: inout ArraySlice<UInt8>) throws(WARCFault) -> Event? {
        switch state {
        case .head(let begun):
            var bytes = begun
            // Moved out of the state, so that appending does not copy.
            state = .head([])
            guard let head = try takeHead(from: &rest, bytes: &bytes) else {
                state = .head(bytes)
                return nil
            }
            state = head.contentLength > 0 ? .block(left: head.contentLength) : .gap(0)
            return .head(head)
        case .block(let left):
            let part = rest.prefix(Int(clamping: left))
            rest = rest.dropFirst(part.count)
            state = left > Int64(part.count) ? .block(left: left - Int64(part.count)) : .gap(0)
            return .block(part)
        case .gap(let seen):
            guard rest.popFirst() == WARCHead.recordEnd[seen] else {
                throw fault("its block is not followed by two empty lines; is its Content-Length right?")
            }
            guard seen == WARCHead.recordEnd.count - 1 else {
                state = .gap(seen + 1)
                return nil
            }
            records += 1
            state = .head([])
            return .end
        }
    }

    /// Appends to `bytes` up to the empty line; returns the head once it is complete.
    private func takeHead(from rest: inout ArraySlice<UInt8>, bytes: inout [UInt8]) throws(WARCFault) -> WARCHead? {
        while let byte = rest.popFirst() {
            bytes.append(byte)
            if bytes.count <= Self.start.count, byte != Self.start[bytes.count - 1] {
                let isGzip = records == 0 && bytes.first == 0x1F
                throw fault(isGzip ? "the file is compressed; unpack it first (gunzip)" : "it does not start with WARC/1.")
            }
            guard Int64(bytes.count) <= limits.headBytes.bytes else { throw fault("its head is longer than \(limits.headBytes)") }
            if byte == 0x0A, bytes.suffix(4) == WARCHead.recordEnd[...] { return try head(of: bytes) }
        }
        return nil
    }

    private func head(of bytes: [UInt8]) throws(WARCFault) -> WARCHead {
        var lines: [ArraySlice<UInt8>] = []
        var rest = bytes.dropLast(2)
        while let feed = rest.firstIndex(of: 0x0A) {
            guard feed > rest.startIndex, rest[feed - 1] == 0x0D else { throw fault("a line of its head ends without CRLF") }
            lines.append(rest[rest.startIndex..<feed - 1])
            rest = rest[(feed + 1)...]
        }
        guard let version = lines.first, ["WARC/1.1", "WARC/1.0"].contains(where: { version.elementsEqual($0.utf8) }) else {
            throw fault("it is neither WARC/1.1 nor WARC/1.0")
        }
        guard lines.count - 1 <= limits.fields else { throw fault("its head has more than \(limits.fields) fields") }
        do throws(WARCHead.Malformed) {
            let head = try WARCHead(lines: lines.dropFirst())
            guard head.contentLength <= limits.blockBytes.bytes else { throw .init("its block is longer than \(limits.blockBytes)") }
            return head
        } catch {
            throw fault(error.reason)
        }
    }

    /// Called at the end of the file. Throws if it is within a record, or before the first.
    package func finish() throws(WARCFault) {
        guard case .head(let begun) = state, begun.isEmpty else { throw fault("the file ends within it") }
        if records == 0 { throw fault("the file is empty") }
    }

    private static let start = Array("WARC/1.".utf8)

    private func fault(_ reason: String) -> WARCFault { WARCFault(record: current, reason: reason) }
}

/// Named fields in order (ISO 28500:2017 §4, §5). Names are compared ignoring case.
package struct WARCHead: Hashable, Sendable {
    /// One line of the head.
    package struct Field: Hashable, Sendable {
        package var name: String
        package var value: String
    }

    package private(set) var fields: [Field] = []
    /// Bytes of the block that follows, at least 0.
    package let contentLength: Int64

    /// A head to be written. Fields with the value nil are omitted.
    ///
    /// - Parameters:
    ///   - type: `warcinfo`, `request`, `response`, …
    ///   - id: A UUID; becomes `<urn:uuid:…>`.
    package init(type: String, id: String, date: Timestamp, contentLength: Int64, _ more: KeyValuePairs<String, String?> = [:]) {
        self.contentLength = max(0, contentLength)
        append(Self.type, value: type)
        append(Self.recordID, value: "<urn:uuid:\(id)>")
        append(Self.date, value: RFC3339.format(date))
        for (name, value) in more { value.map { append(name, value: $0) } }
        append(Self.contentLength, value: String(self.contentLength))
    }

    /// Parses the lines between `WARC/1.x` and the empty one. Throws a sentence for a violation of the standard.
    init(lines: some Sequence<ArraySlice<UInt8>>) throws(Malformed) {
        var fields: [Field] = []
        for line in lines { fields.append(try Self.field(of: line)) }
        let named = { (name: String) in fields.filter { FieldByte.equal($0.name.utf8, name.utf8) }.map(\.value) }
        for name in [Self.type, Self.recordID, Self.date, Self.contentLength] where named(name).count != 1 {
            throw Malformed(named(name).isEmpty ? "\(name) is missing" : "\(name) is there more than once")
        }
        let length = named(Self.contentLength).first ?? ""
        guard (1...18).contains(length.utf8.count), length.utf8.allSatisfy(FieldByte.isDigit), let length = Int64(length) else {
            throw Malformed("its Content-Length is not a number")
        }
        contentLength = length
        self.fields = fields
    }

    struct Malformed: Error {
        let reason: String
        init(_ reason: String) { self.reason = reason }
    }

    private static func field(of line: ArraySlice<UInt8>) throws(Malformed) -> Field {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex, line[..<colon].allSatisfy(FieldByte.isTokenByte)
        else { throw Malformed("a line of its head is no named field") }
        let value = FieldList.trimmed(Substring(decoding: line[(colon + 1)...], as: UTF8.self))
        guard value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
            throw Malformed("a field of its head holds a control character")
        }
        return Field(name: String(decoding: line[..<colon], as: UTF8.self), value: String(value))
    }

    private mutating func append(_ name: String, value: String) { fields.append(Field(name: name, value: value)) }

    /// The first field of that name.
    package subscript(name: String) -> String? { fields.first { FieldByte.equal($0.name.utf8, name.utf8) }?.value }

    /// `request`, `response`, …, in lower case.
    package var type: String { self[Self.type]?.lowercased() ?? "" }
    /// The time of the exchange; nil if unreadable.
    package var date: Timestamp? { self[Self.date].flatMap(RFC3339.parse) }
    /// The requested URL; WARC/1.0 writes it in angle brackets.
    package var targetURI: String? {
        self[Self.targetURI].map { $0.hasPrefix("<") && $0.hasSuffix(">") ? String($0.dropFirst().dropLast()) : $0 }
    }
    /// True if the block is an HTTP message.
    package var isHTTP: Bool { self[Self.contentType]?.lowercased().hasPrefix("application/http") ?? false }

    /// The serialised head, including its closing empty line.
    package var serialized: [UInt8] {
        let lines = fields.map { "\($0.name): \($0.value)\r\n" }.joined()
        return Array("WARC/1.1\r\n\(lines)\r\n".utf8)
    }

    /// The bytes after a block.
    package static let recordEnd: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A]

    package static let type = "WARC-Type"
    package static let recordID = "WARC-Record-ID"
    package static let date = "WARC-Date"
    package static let contentLength = "Content-Length"
    package static let contentType = "Content-Type"
    package static let targetURI = "WARC-Target-URI"
    package static let concurrentTo = "WARC-Concurrent-To"
    package static let payloadDigest = "WARC-Payload-Digest"
}

/// Serialises the heads of messages for records (ISO 28500:2017 §6.3, §6.4; RFC 9112 §2).
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

/// A digest as stated in a record (ISO 28500:2017 §5.8; RFC 4648).
package struct PayloadDigest: Hashable, Sendable {
    /// Algorithms that can be compared, with the length of their values.
    package enum Algorithm: String, CaseIterable, Sendable {
        case sha1, sha256

        /// Bytes.
        var length: Int { self == .sha1 ? 20 : 32 }
    }

    package var algorithm: Algorithm
    package var value: [UInt8]

    /// A computed digest.
    package init(_ algorithm: Algorithm, _ value: [UInt8]) {
        self.algorithm = algorithm
        self.value = value
    }

    /// Parses `algorithm:value` with the value in base 16 or base 32. Nil for unknown algorithms and values of another length.
    package init?(_ text: String) {
        let parts = text.split(separator: ":", maxSplits: 1)
        guard parts.count == 2, let algorithm = Algorithm(rawValue: parts[0].lowercased().replacing("-", with: "")) else { return nil }
        let digits = parts[1].uppercased()
        guard let value = Self.bytes(of: digits, of: algorithm) else { return nil }
        self.init(algorithm, value)
    }

    /// `sha256:` and lower-case base 16.
    package var text: String {
        let digits = Array("0123456789abcdef".utf8)
        let hex = value.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        return "\(algorithm.rawValue):\(String(decoding: hex, as: UTF8.self))"
    }

    private static func bytes(of digits: String, of algorithm: Algorithm) -> [UInt8]? {
        let (alphabet, bits) = digits.utf8.count == algorithm.length * 2 ? ("0123456789ABCDEF", 4) : ("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 5)
        let places = Dictionary(uniqueKeysWithValues: alphabet.utf8.enumerated().map { ($1, $0) })
        var (bytes, held, count): ([UInt8], Int, Int) = ([], 0, 0)
        for digit in digits.utf8 where digit != UInt8(ascii: "=") {
            guard let place = places[digit], bytes.count <= algorithm.length else { return nil }
            held = (held << bits | place) & 0xFFF
            count += bits
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: held >> count))
            }
        }
        return bytes.count == algorithm.length ? bytes : nil
    }
}

/// A file that is not valid WARC from some record on. Earlier records were valid.
package struct WARCFault: Error, Hashable, CustomStringConvertible, Sendable {
    /// Counted from 1; one past the last complete record.
    package var record: Int
    /// One sentence with short excerpts at most.
    package var reason: String

    package init(record: Int, reason: String) {
        self.record = record
        self.reason = reason
    }

    /// `record 3: its Content-Length is not a number`.
    package var description: String { "record \(record): \(reason)" }
}
