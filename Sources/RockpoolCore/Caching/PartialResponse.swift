// Responses of which a part is stored: what may be kept, what it answers, and how it becomes whole (RFC 9111 §3.3, §3.4).
//
// A stored part is a stored 206 with one `Content-Range`; its bytes are those of that range.
package import HTTPTypes

/// The rules of incomplete responses. Nothing partial is ever served as whole.
package enum PartialResponse {
    /// Which bytes a stored response holds; nil when it holds all. A 206 that does not say holds none.
    package static func part(of head: ResponseHead) -> ContentRange? {
        guard head.status == 206 else { return nil }
        return head.fields.single(.contentRange).flatMap { ContentRange($0) } ?? .unsatisfied(length: 0)
    }

    /// Whether a 206 to `request` may be kept: asked for, in one piece, within the one range asked for, of a length that is known.
    static func isStorable(_ response: ResponseHead, to request: RequestHead) -> Bool {
        guard request.method == .get, let asked = ByteRangeSet(request.fields), asked.ranges.count == 1,
            case .part(let range, of: let length?) = part(of: response),
            let wanted = asked.ranges[0].resolved(length: length), range.clamped(to: wanted) == range
        else { return false }
        return !response.fields.contains(.contentLength) || response.fields.single(.contentLength) == String(range.count)
    }

    /// Whether `stored` has every byte that `request` asks for.
    static func holds(_ stored: StoredResponse, for request: RequestHead) -> Bool {
        stored.part == nil || RangeReply.decide(request: request, stored: stored.head, bodyLength: stored.bodyLength, boundary: "") != nil
    }

    /// What to send in place of the client's range and conditions, so that the rest comes if the representation is still the same and
    /// the whole if not; nil when `stored` has no beginning to add to, or no strong tag to compare by. The last stored byte is asked for
    /// once more: an origin that gives another one there does not continue what is stored.
    package static func completion(of stored: StoredResponse) -> HTTPFields? {
        guard case .part(let range, of: let length?) = stored.part, range.lowerBound == 0, range.upperBound < length,
            let tag = stored.entityTag, tag.isStrong
        else { return nil }
        return [.range: "bytes=\(range.upperBound - 1)-", .ifRange: tag.fieldValue]
    }

    /// The head under which the first `received` bytes of a response are kept whose transfer broke off; nil when they are of no use.
    /// - Parameter head: As it was to be stored, with the `Content-Length` that was announced; a 206 is interrupted like a 200.
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
        return holding(start..<start + received, of: announced.length, head.fields)
    }

    /// A 206 that holds the whole is as good as the 200, and is stored as one (RFC 9110 §15.3.7.3). One that does not loses what it says
    /// of its own content, which is cut and joined.
    static func normalized(_ head: ResponseHead) -> ResponseHead {
        guard case .part(let range, of: let length?) = part(of: head) else { return head }
        let isWhole = range == 0..<length
        return holding(range, of: length, isWhole ? head.fields : withoutContentDigests(head.fields))
    }

    /// The fields of a message for another stretch of the same representation.
    static func withoutContentDigests(_ fields: HTTPFields) -> HTTPFields {
        HTTPFields(fields.filter { !BodyDigests.contentFields.contains($0.name.canonicalName) })
    }

    /// The head of a stored response with the bytes `range`: 200 when that is all of them.
    package static func holding(_ range: Range<Int64>, of length: Int64, _ fields: HTTPFields) -> ResponseHead {
        let isWhole = range == 0..<length
        var head = ResponseHead(status: isWhole ? 200 : 206, fields: fields)
        head.fields[.contentRange] = isWhole ? nil : ContentRange.part(range, of: length).fieldValue
        head.fields[.contentLength] = String(range.count)
        return head
    }
}
