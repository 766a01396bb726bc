// Partially stored responses: what may be stored, which requests it satisfies, and how it is completed (RFC 9111 §3.3, §3.4).
//
// A stored part is a stored 206 with one `Content-Range`; its bytes are those of that range.
package import HTTPTypes

/// The rules for incomplete responses. A partial response is never served as a whole.
package enum PartialResponse {
    /// The bytes a stored response holds; nil when it holds all. A 206 without a readable `Content-Range` holds none.
    package static func part(of head: ResponseHead) -> ContentRange? {
        guard head.status == 206 else { return nil }
        return head.fields.single(.contentRange).flatMap { ContentRange($0) } ?? .unsatisfied(length: 0)
    }

    /// True if a 206 to `request` may be stored: a single part of known length, within the single range that was requested.
    static func isStorable(_ response: ResponseHead, to request: RequestHead) -> Bool {
        guard request.method == .get, let asked = ByteRangeSet(request.fields), asked.ranges.count == 1,
            case .part(let range, of: let length?) = part(of: response),
            let wanted = asked.ranges[0].resolved(length: length), range.clamped(to: wanted) == range
        else { return false }
        return !response.fields.contains(.contentLength) || response.fields.single(.contentLength) == String(range.count)
    }

    /// The head for storing the first `received` bytes of an interrupted response; nil if they are of no use.
    /// - Parameter head: The head to be stored, with the announced `Content-Length`; a 206 can be interrupted like a 200.
    package static func interrupted(_ head: ResponseHead, to request: RequestHead, received: Int64) -> ResponseHead? {
        guard request.method == .get, received > 0, head.status == 200 || head.status == 206,
            let tag = head.fields.single(.eTag).flatMap({ EntityTag($0) }), tag.isStrong
        else { return nil }
        let announced: (range: Range<Int64>, length: Int64)
        if head.status == 206 {
            guard case .part(let range, of: let length?) = part(of: head) else { return nil }
            announced = (range, length)
        } else {
            guard let length = head.fields.single(.contentLength).flatMap({ Int64($0) }), length > 0 else { return nil }
            announced = (0..<length, length)
        }
        guard received < announced.range.count else { return nil }
        let start = announced.range.lowerBound
        return holding(start..<start + received, of: announced.length, fields: head.fields)
    }

    /// A 206 that holds the whole is equivalent to the 200 and is stored as one (RFC 9110 §15.3.7.3). Any other 206 loses the digests of
    /// its content, because that content will be cut and joined.
    static func normalized(_ head: ResponseHead) -> ResponseHead {
        guard case .part(let range, of: let length?) = part(of: head) else { return head }
        let isWhole = range == 0..<length
        return holding(range, of: length, fields: isWhole ? head.fields : withoutContentDigests(head.fields))
    }

    /// The fields without the digests of one message's content, for another section of the same representation.
    static func withoutContentDigests(_ fields: HTTPFields) -> HTTPFields {
        HTTPFields(fields.filter { !BodyDigests.contentFields.contains($0.name.canonicalName) })
    }

    /// The head of a stored response with the bytes `range`: 200 if the range is the whole. That still says that its origin answers ranges,
    /// which a 206 need not say (RFC 9110 §14.3).
    package static func holding(_ range: Range<Int64>, of length: Int64, fields: HTTPFields) -> ResponseHead {
        let isWhole = range == 0..<length
        var head = ResponseHead(status: isWhole ? 200 : 206, fields: fields)
        head.fields[.contentRange] = isWhole ? nil : ContentRange.part(range, of: length).fieldValue
        head.fields[.contentLength] = String(range.count)
        if isWhole, !head.fields.contains(.acceptRanges) { head.fields[.acceptRanges] = "bytes" }
        return head
    }
}
