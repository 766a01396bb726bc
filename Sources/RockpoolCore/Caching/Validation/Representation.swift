// The identity of a body of which several messages hold parts (RFC 9110 §8.8.3, RFC 9111 §3.4; docs/caching.md#ranges).
import HTTPTypes

/// One state of a resource: bytes of equal strong tag and total length belong together.
package struct Representation: Hashable, Sendable {
    package let tag: EntityTag
    /// Length of the whole body, in bytes.
    package let length: Int64

    /// Reads the representation that a response holds, whole or in part; nil without a strong tag or a known length.
    /// - Parameter length: The announced length of the body of a 200.
    package init?(of head: ResponseHead, length: Int64?) {
        guard let tag = head.fields.single(.eTag).flatMap({ EntityTag($0) }), tag.isStrong,
            let whole = head.status == 206 ? PartialResponse.part(of: head)?.length : head.status == 200 ? length : nil, whole > 0
        else { return nil }
        self.tag = tag
        self.length = whole
    }

    /// Reads the representation of a stored response.
    package init?(of stored: StoredResponse) { self.init(of: stored.head, length: stored.bodyLength) }
}

extension Range<Int64> {
    /// The bytes of this range that none of `held` contains, in order.
    package func gaps(between held: [Range<Int64>]) -> [Range<Int64>] {
        var (gaps, start) = ([Range<Int64>](), lowerBound)
        for range in held.sorted(by: { $0.lowerBound < $1.lowerBound }) where range.upperBound > start && range.lowerBound < upperBound {
            if range.lowerBound > start { gaps.append(start..<range.lowerBound) }
            start = Swift.max(start, range.upperBound)
        }
        if start < upperBound { gaps.append(start..<upperBound) }
        return gaps
    }
}

extension StoredResponse {
    /// The stored response as the whole that it is a part of, for decisions about its reuse; nil if the length of the whole is unknown.
    package var asWhole: StoredResponse? {
        guard let part else { return self }
        guard let length = part.length else { return nil }
        var whole = self
        whole.head = PartialResponse.holding(0..<length, of: length, fields: head.fields)
        whole.bodyLength = length
        return whole
    }

    /// The bytes that are stored, as positions in the whole.
    package var heldRange: Range<Int64>? { part.map(\.range) ?? 0..<bodyLength }

    /// True if the origin is known to answer requests for ranges.
    package var supportsRanges: Bool {
        part != nil || head.fields[.acceptRanges]?.lowercased().contains("bytes") == true
    }
}
