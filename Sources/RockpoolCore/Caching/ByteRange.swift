// Ranges: those that a request selects, the position of a part in the whole, and the reply (RFC 9110 §14).
package import HTTPTypes

/// One byte range as written by the client (RFC 9110 §14.1.2, §14.2). Numbers that overflow count as the largest integer.
package enum ByteRange: Hashable, Sendable {
    /// `500-999`, or `500-` to the end.
    case from(Int64, through: Int64?)
    /// `-500`: the last 500.
    case suffix(Int64)

    /// Nil if `text` is not a range, or ends before it begins.
    init?(_ text: Substring) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, !(parts[0].isEmpty && parts[1].isEmpty) else { return nil }
        let last = parts[1].isEmpty ? nil : Self.position(in: parts[1])
        guard last != nil || parts[1].isEmpty else { return nil }
        if parts[0].isEmpty {
            self = .suffix(last ?? 0)
        } else {
            guard let first = Self.position(in: parts[0]), last.map({ $0 >= first }) ?? true else { return nil }
            self = .from(first, through: last)
        }
    }

    /// The selected bytes of a body of `length`; nil if it has none of them.
    package func resolved(length: Int64) -> Range<Int64>? {
        switch self {
        case .from(let first, let last):
            guard first < length else { return nil }
            return first..<min(last ?? .max, length - 1) + 1
        case .suffix(let count):
            guard count > 0, length > 0 else { return nil }
            return length - min(count, length)..<length
        }
    }

    private static func position(in text: Substring) -> Int64? {
        text.isDigits ? text.utf8.reduce(0) { $0.multipliedClamped(by: 10).addedClamped(Int64($1 - 0x30)) } : nil
    }
}

/// The ranges of one `Range` field.
package struct ByteRangeSet: Hashable, Sendable {
    /// At least one, in the requested order.
    package let ranges: [ByteRange]

    /// The maximum number of ranges in a request; a field with more is ignored (RFC 9110 §17.15). Programs that fetch what has changed of a
    /// file ask for tens of them at once.
    package static let limit = 200

    /// Nil for any value to be ignored: another unit, a malformed member, or too many members (RFC 9110 §14.2).
    package init?(_ value: String) {
        guard let equals = value.firstIndex(of: "="), FieldByte.equal(value[..<equals].utf8, "bytes".utf8) else { return nil }
        var ranges: [ByteRange] = []
        for member in value[value.index(after: equals)...].split(separator: ",") {
            let member = member.trimmingOWS()
            if member.isEmpty { continue }
            guard ranges.count < Self.limit, let range = ByteRange(member) else { return nil }
            ranges.append(range)
        }
        guard !ranges.isEmpty else { return nil }
        self.ranges = ranges
    }

    /// The ranges of a request; nil without a `Range` field, or if the field is to be ignored.
    package init?(_ fields: HTTPFields) {
        guard fields.contains(.range), let value = fields.single(.range) else { return nil }
        self.init(value)
    }

    /// The selected bytes of a body of `length`; ranges that overlap or touch are merged at the position of the first (RFC 9110 §15.3.7.2).
    /// Empty if none can be satisfied.
    package func resolved(length: Int64) -> [Range<Int64>] {
        var kept: [Range<Int64>] = []
        for range in ranges.compactMap({ $0.resolved(length: length) }) {
            let touches = { (other: Range<Int64>) in other.lowerBound <= range.upperBound && range.lowerBound <= other.upperBound }
            let place = kept.firstIndex(where: touches) ?? kept.endIndex
            let union = kept.filter(touches).reduce(range) {
                min($0.lowerBound, $1.lowerBound)..<max($0.upperBound, $1.upperBound)
            }
            kept.removeAll(where: touches)
            kept.insert(union, at: place)
        }
        return kept
    }
}

/// The value of `Content-Range`, in bytes (RFC 9110 §14.4).
package enum ContentRange: Hashable, Sendable {
    /// These bytes, never empty, of a whole of `length`; nil if the length is unknown.
    case part(Range<Int64>, of: Int64?)
    /// `bytes */len`: no requested byte exists.
    case unsatisfied(length: Int64)

    /// Nil if the unit is not bytes, or the value is malformed or contradicts itself.
    package init?(_ value: String) {
        let words = value.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 2, FieldByte.equal(words[0].utf8, "bytes".utf8) else { return nil }
        let sides = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard sides.count == 2 else { return nil }
        let length = Self.number(in: sides[1])
        guard length != nil || sides[1] == "*" else { return nil }
        if sides[0] == "*" {
            guard let length else { return nil }
            self = .unsatisfied(length: length)
            return
        }
        let ends = sides[0].split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Self.number(in: ends[0]), let last = Self.number(in: ends[1]), first <= last,
            last < length ?? .max
        else { return nil }
        self = .part(first..<last + 1, of: length)
    }

    /// The enclosed bytes; nil for `.unsatisfied`.
    package var range: Range<Int64>? {
        if case .part(let range, _) = self { range } else { nil }
    }

    /// The length of the whole; nil if unknown.
    package var length: Int64? {
        switch self {
        case .part(_, let length): length
        case .unsatisfied(let length): length
        }
    }

    /// The value in field syntax.
    package var fieldValue: String {
        switch self {
        case .part(let range, let length): "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length.map(String.init) ?? "*")"
        case .unsatisfied(let length): "bytes */\(length)"
        }
    }

    /// Digits that fit into 64 bits; a longer number is rejected.
    private static func number(in text: Substring) -> Int64? { text.isDigits ? Int64(text) : nil }
}

/// The part of a stored response to send, decided after `Preconditions` (RFC 9110 §13.1.5, §14.2, §15.3.7, §15.5.17). Ranges are offsets
/// into the stored bytes.
package enum RangeReply: Hashable, Sendable {
    /// The stored response unchanged.
    case whole
    /// 206 with these bytes.
    case part(ResponseHead, Range<Int64>)
    /// 206 with each part's preamble and bytes in turn, then `closing`.
    case parts(ResponseHead, [MultipartPart], closing: String)
    /// 416, without a body.
    case unsatisfiable(ResponseHead)

    /// The response to `request`; nil if `stored` is a part without the requested bytes, a case that `Reuse.decide` excludes.
    /// - Parameters:
    ///   - bodyLength: Length of the stored bytes.
    ///   - boundary: Separates the parts of a multipart response: an unpredictable token (random hexadecimal) that no body contains.
    package static func decide(request: RequestHead, stored: ResponseHead, bodyLength: Int64, boundary: String) -> RangeReply? {
        if let part = PartialResponse.part(of: stored) { return cut(part, request: request, stored: stored) }
        guard stored.status == 200, bodyLength > 0, let asked = ranges(request: request, stored: stored) else { return .whole }
        let ranges = asked.resolved(length: bodyLength)
        switch ranges.count {
        case 0: return .unsatisfiable(unsatisfiable(stored, length: bodyLength))
        case 1: return .part(partial(of: stored, range: ranges[0], of: bodyLength), ranges[0])
        default:
            let (head, parts, closing, total) = multipart(of: stored, ranges: ranges, of: bodyLength, boundary: boundary)
            // Many small ranges would cost more than the whole, which a client must expect (RFC 9110 §14.2, §17.15).
            return ranges.count > freeRanges && total > bodyLength ? .whole : .parts(head, parts, closing: closing)
        }
    }

    /// The number of ranges that are answered one by one, even if the whole would be shorter than the heads of the parts.
    private static let freeRanges = 16

    /// The ranges that apply: those of a GET, unless its `If-Range` shows that the client holds parts of another representation.
    static func ranges(request: RequestHead, stored: ResponseHead) -> ByteRangeSet? {
        guard request.method == .get, let ranges = ByteRangeSet(request.fields), meetsIfRange(request.fields, stored: stored) else {
            return nil
        }
        return ranges
    }

    /// RFC 9110 §13.1.5: a tag is compared strongly. A date matches only if it equals a modification date at least one second before the
    /// response's `Date`, because two modifications could share the same second (§8.8.2.2).
    private static func meetsIfRange(_ fields: HTTPFields, stored: ResponseHead) -> Bool {
        guard fields.contains(.ifRange) else { return true }
        guard let condition = fields.single(.ifRange) else { return false }
        if condition.hasPrefix("\"") || condition.hasPrefix("W/") {
            guard let asked = EntityTag(condition), let own = stored.fields.single(.eTag).flatMap({ EntityTag($0) }) else { return false }
            return asked.matchesStrongly(own)
        }
        guard let asked = HTTPDate.parse(condition), let modified = stored.fields.single(.lastModified).flatMap({ HTTPDate.parse($0) }),
            let date = stored.fields.single(.date).flatMap({ HTTPDate.parse($0) })
        else { return false }
        return asked == modified && date - modified >= .seconds(1)
    }

    /// One range out of a stored part.
    private static func cut(_ part: ContentRange, request: RequestHead, stored: ResponseHead) -> RangeReply? {
        guard let held = part.range, let length = part.length, let asked = ranges(request: request, stored: stored) else { return nil }
        let ranges = asked.resolved(length: length)
        guard ranges.count == 1, ranges[0].clamped(to: held) == ranges[0] else { return nil }
        let start = ranges[0].lowerBound - held.lowerBound
        return .part(partial(of: stored, range: ranges[0], of: length), start..<start + Int64(ranges[0].count))
    }

    private static func partial(of stored: ResponseHead, range: Range<Int64>, of length: Int64) -> ResponseHead {
        var head = ResponseHead(status: 206, fields: PartialResponse.withoutContentDigests(stored.fields))
        head.fields[.contentRange] = ContentRange.part(range, of: length).fieldValue
        head.fields[.contentLength] = String(range.count)
        return head
    }

    /// RFC 9110 §15.3.7.2. No byte is sent twice. `total` is the length of the response in bytes.
    private static func multipart(
        of stored: ResponseHead, ranges: [Range<Int64>], of length: Int64, boundary: String
    ) -> (head: ResponseHead, parts: [MultipartPart], closing: String, total: Int64) {
        let type = stored.fields[.contentType].map { "Content-Type: \($0)\r\n" } ?? ""
        let parts = ranges.map { range in
            let place = ContentRange.part(range, of: length).fieldValue
            // The first part begins with a line break too (RFC 2046 §5.1.1), as in the bodies of nginx and Apache: zsync reads one.
            let preamble = "\r\n--\(boundary)\r\n\(type)Content-Range: \(place)\r\n\r\n"
            return MultipartPart(preamble: preamble, range: range)
        }
        let closing = "\r\n--\(boundary)--\r\n"
        let total = parts.reduce(Int64(closing.utf8.count)) { $0.addedClamped($1.length) }
        var head = ResponseHead(status: 206, fields: PartialResponse.withoutContentDigests(stored.fields))
        head.fields[.contentType] = "multipart/byteranges; boundary=\(boundary)"
        head.fields[.contentLength] = String(total)
        return (head, parts, closing, total)
    }

    private static func unsatisfiable(_ stored: ResponseHead, length: Int64) -> ResponseHead {
        var head = ResponseHead(status: 416)
        head.fields[.contentRange] = ContentRange.unsatisfied(length: length).fieldValue
        head.fields[.contentLength] = "0"
        for name in [HTTPField.Name.date, .eTag, .lastModified, .vary] { head.fields[values: name] = stored.fields[values: name] }
        return head
    }
}

/// One part of a `multipart/byteranges` body (RFC 9110 §14.6).
package struct MultipartPart: Hashable, Sendable {
    /// The delimiter and the part's own header fields, up to and including the blank line.
    package let preamble: String
    /// The bytes that follow the preamble, as offsets into the stored body.
    package let range: Range<Int64>

    /// The length in bytes, including the preamble.
    package var length: Int64 { Int64(preamble.utf8.count).addedClamped(Int64(range.count)) }
}
