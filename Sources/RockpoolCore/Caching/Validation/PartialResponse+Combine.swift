// Combines two parts of one representation, eventually into the whole (RFC 9111 §3.4, RFC 9110 §15.3.7.3).
import HTTPTypes

extension PartialResponse {
    /// One section of a body combined from two sources, as offsets into the source's bytes.
    package enum Piece: Hashable, Sendable {
        case stored(Range<Int64>)
        case received(Range<Int64>)
    }

    /// Combines `stored` with the 206 `answer` (RFC 9111 §3.4): the fields updated as by a 304, and the pieces of the combined body in
    /// order. The result is a 200 once no byte is missing.
    ///
    /// Nil unless both have the same strong tag and length, and their ranges overlap or touch; then `answer` is a separate response.
    package static func combined(
        _ stored: StoredResponse, with answer: ResponseHead, sent: Moment, responseTime: Timestamp
    ) -> (response: StoredResponse, pieces: [Piece])? {
        guard case .part(let new, of: let length?) = part(of: answer), let old = held(by: stored, length: length),
            let tag = answer.fields.single(.eTag).flatMap({ EntityTag($0) }), tag.isStrong, let own = stored.entityTag,
            tag.matchesStrongly(own), new.lowerBound <= old.upperBound, old.lowerBound <= new.upperBound
        else { return nil }
        var answer = answer
        answer.fields = withoutContentDigests(answer.fields)
        var response = Revalidation.freshened(stored, by: answer, sent: sent, responseTime: responseTime)
        let union = min(old.lowerBound, new.lowerBound)..<max(old.upperBound, new.upperBound)
        response.head = holding(union, of: length, fields: response.head.fields)
        response.bodyLength = Int64(union.count)
        return (response, pieces(old: old, new: new))
    }

    /// The stored range of a representation of `length` bytes; nil if the stored response has another length.
    private static func held(by stored: StoredResponse, length: Int64) -> Range<Int64>? {
        guard let part = stored.part else { return stored.head.status == 200 && stored.bodyLength == length ? 0..<length : nil }
        return part.length == length ? part.range : nil
    }

    /// The stored bytes stay; from the received bytes, those before and after them are added.
    private static func pieces(old: Range<Int64>, new: Range<Int64>) -> [Piece] {
        var pieces = [Piece.stored(0..<Int64(old.count))]
        if new.lowerBound < old.lowerBound { pieces.insert(.received(0..<old.lowerBound - new.lowerBound), at: 0) }
        if new.upperBound > old.upperBound { pieces.append(.received(old.upperBound - new.lowerBound..<Int64(new.count))) }
        return pieces
    }
}
