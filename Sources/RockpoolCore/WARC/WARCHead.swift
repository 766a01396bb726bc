// The head of a WARC record: its type and its named fields (ISO 28500:2017 §4, §5).

/// Named fields in order. Names are compared ignoring case.
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
