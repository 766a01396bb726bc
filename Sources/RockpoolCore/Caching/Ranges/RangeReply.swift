// Serves a `Range` request from stored bytes: whole, one part, several parts, or 416 (RFC 9110 §13.1.5, §14.2, §15.3.7, §15.5.17).
import HTTPTypes

/// The part of a stored response to send, decided after `Preconditions`. Ranges are offsets into the stored bytes.
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
}

extension RangeReply {
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
