// Two parts of one representation made one, and in time the whole (RFC 9111 §3.4, RFC 9110 §15.3.7.3).
import HTTPTypes

extension PartialResponse {
    /// One stretch of a body put together from two, as offsets into the bytes it comes from.
    package enum Piece: Hashable, Sendable {
        case stored(Range<Int64>)
        case received(Range<Int64>)
    }

    /// `stored` with what `answer`, a 206, adds (RFC 9111 §3.4): its fields brought up to date as by a 304, and the pieces its body
    /// consists of, in order. Whole, and a 200, once nothing is missing.
    ///
    /// Nil unless both have the same strong tag and length, and their ranges overlap or touch; then `answer` is a response of its own.
    package static func combined(
        _ stored: StoredResponse, with answer: ResponseHead, requestTime: Timestamp, responseTime: Timestamp
    ) -> (response: StoredResponse, pieces: [Piece])? {
        guard case .part(let new, of: let length?) = part(of: answer), let old = held(by: stored, length: length),
            let tag = answer.fields.single(.eTag).flatMap({ EntityTag($0) }), tag.isStrong, let own = stored.entityTag,
            tag.matchesStrongly(own), new.lowerBound <= old.upperBound, old.lowerBound <= new.upperBound
        else { return nil }
        var answer = answer
        answer.fields = withoutContentDigests(answer.fields)
        var response = Revalidation.freshened(stored, by: answer, requestTime: requestTime, responseTime: responseTime)
        let union = min(old.lowerBound, new.lowerBound)..<max(old.upperBound, new.upperBound)
        response.head = holding(union, of: length, response.head.fields)
        response.bodyLength = Int64(union.count)
        return (response, pieces(old, new))
    }

    /// The range of a whole of `length` that is stored; nil when it is a whole of another length.
    private static func held(by stored: StoredResponse, length: Int64) -> Range<Int64>? {
        guard let part = stored.part else { return stored.head.status == 200 && stored.bodyLength == length ? 0..<length : nil }
        return part.length == length ? part.range : nil
    }

    /// What is stored stays; of what was received, what stands before it and behind it.
    private static func pieces(_ old: Range<Int64>, _ new: Range<Int64>) -> [Piece] {
        var pieces = [Piece.stored(0..<Int64(old.count))]
        if new.lowerBound < old.lowerBound { pieces.insert(.received(0..<old.lowerBound - new.lowerBound), at: 0) }
        if new.upperBound > old.upperBound { pieces.append(.received(old.upperBound - new.lowerBound..<Int64(new.count))) }
        return pieces
    }
}
