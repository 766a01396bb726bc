// Reuse of stored parts (RFC 9111 §3.3, §3.4).
package import HTTPTypes

extension PartialResponse {
    /// True if `stored` has every byte that `request` needs.
    static func holds(_ stored: StoredResponse, for request: RequestHead) -> Bool {
        stored.part == nil || RangeReply.decide(request: request, stored: stored.head, bodyLength: stored.bodyLength, boundary: "") != nil
    }

    /// The fields that replace the client's range and conditions, so that the upstream sends the rest if the representation is unchanged
    /// and the whole otherwise; nil if `stored` does not hold the beginning, or has no strong tag to compare. The last stored byte is
    /// requested again: an origin that returns a different byte there does not continue the stored representation.
    package static func completion(of stored: StoredResponse) -> HTTPFields? {
        guard case .part(let range, of: let length?) = stored.part, range.lowerBound == 0, range.upperBound < length,
            let tag = stored.entityTag, tag.isStrong
        else { return nil }
        return [.range: "bytes=\(range.upperBound - 1)-", .ifRange: tag.fieldValue]
    }
}
