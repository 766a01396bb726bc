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

/// Reuse of stored parts (RFC 9111 §3.3, §3.4).
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

/// Combines two parts of one representation, eventually into the whole (RFC 9111 §3.4, RFC 9110 §15.3.7.3).
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

/// Joins parts of one representation that are stored separately (RFC 9111 §3.4, RFC 9110 §15.3.7.3).
extension PartialResponse {
    /// Several stored parts as one response.
    package struct Joint: Hashable, Sendable {
        /// A 200 if no byte is missing, else a 206 of all their bytes.
        package var response: StoredResponse
        /// The parts that form the body, in order, with the bytes to take from each.
        package var slices: [Slice]
    }

    /// Bytes of one of several parts.
    package struct Slice: Hashable, Sendable {
        /// The index of the part.
        package var index: Int
        /// Offsets into that part's bytes.
        package var range: Range<Int64>
    }

    /// Size up to which a join is always made, however many bytes it copies.
    private static let copiedForFree = ByteCount.mib(8).bytes
    /// Above it, the joined size may be at most this multiple of the new part's size, so that each byte is copied only a few times.
    private static let copiesAllowed: Int64 = 4

    /// The parts to join after `parts[index]` was stored: all of them if they form the whole, else as many of its neighbours as are worth
    /// copying. Nil when there is nothing to join.
    /// - Parameter parts: Stored parts of one variant.
    package static func joint(_ parts: [StoredResponse], after index: Int) -> Joint? {
        guard parts.indices.contains(index), let own = place(of: parts[index]), let tag = parts[index].entityTag, tag.isStrong else {
            return nil
        }
        let candidates = parts.indices.compactMap { other -> (index: Int, range: Range<Int64>)? in
            guard isSameRepresentation(parts[other], as: parts[index]), let place = place(of: parts[other]) else { return nil }
            return (other, place.range)
        }
        let ordered = candidates.sorted { ($0.range.lowerBound, $0.range.upperBound) < ($1.range.lowerBound, $1.range.upperBound) }
        let run = whole(ordered, length: own.length) ?? neighbours(of: index, own: own.range, in: ordered)
        return run.count > 1 ? joint(parts, run: run, length: own.length) : nil
    }

    /// True if two stored responses hold bytes of the same representation: the same strong tag and length.
    package static func isSameRepresentation(_ a: StoredResponse, as b: StoredResponse) -> Bool {
        guard let tag = a.entityTag, tag.isStrong, let other = b.entityTag, tag.matchesStrongly(other) else { return false }
        return place(of: a)?.length == place(of: b)?.length
    }

    /// True if the stored part `old` is obsolete once `new` is stored: it belongs to another representation, or `new` has all its bytes.
    package static func supersedes(_ new: StoredResponse, old: StoredResponse) -> Bool {
        guard new.part != nil, isSameRepresentation(new, as: old), let range = place(of: new)?.range, let other = place(of: old)?.range
        else {
            return true
        }
        return range.lowerBound <= other.lowerBound && other.upperBound <= range.upperBound
    }

    /// True if `stored` holds every byte of the 206 `head`.
    package static func holds(_ stored: StoredResponse, all head: ResponseHead) -> Bool {
        guard case .part(let range, of: let length?) = part(of: head), let place = place(of: stored), place.length == length,
            let tag = head.fields.single(.eTag).flatMap({ EntityTag($0) }), tag.isStrong, let own = stored.entityTag,
            tag.matchesStrongly(own)
        else { return false }
        return place.range.lowerBound <= range.lowerBound && range.upperBound <= place.range.upperBound
    }

    private static func place(of stored: StoredResponse) -> (range: Range<Int64>, length: Int64)? {
        guard case .part(let range, of: let length?)? = stored.part else { return nil }
        return (range, length)
    }

    // MARK: - Runs

    private typealias Run = [(index: Int, range: Range<Int64>)]

    /// Parts that together hold every byte; nil when some are missing.
    private static func whole(_ ordered: Run, length: Int64) -> Run? {
        var run: Run = []
        var end: Int64 = 0
        for part in ordered {
            guard part.range.lowerBound <= end else { return nil }
            guard part.range.upperBound > end else { continue }
            run.append(part)
            end = part.range.upperBound
        }
        return end == length ? run : nil
    }

    /// The part and its adjoining parts on either side, as far as they are worth copying.
    private static func neighbours(of index: Int, own: Range<Int64>, in ordered: Run) -> Run {
        guard let place = ordered.firstIndex(where: { $0.index == index }) else { return [] }
        let most = max(copiedForFree, copiesAllowed * Int64(own.count))
        var (run, union) = ([ordered[place]], own)
        func add(_ part: (index: Int, range: Range<Int64>)) {
            let wider = min(union.lowerBound, part.range.lowerBound)..<max(union.upperBound, part.range.upperBound)
            guard part.range.overlaps(union) || part.range.lowerBound == union.upperBound || part.range.upperBound == union.lowerBound,
                wider.count > union.count, Int64(wider.count) <= most
            else { return }
            (run, union) = (run + [part], wider)
        }
        for part in ordered[..<place].reversed() { add(part) }
        for part in ordered[(place + 1)...] { add(part) }
        return run.sorted { ($0.range.lowerBound, $0.range.upperBound) < ($1.range.lowerBound, $1.range.upperBound) }
    }

    private static func joint(_ parts: [StoredResponse], run: Run, length: Int64) -> Joint? {
        guard let start = run.first?.range.lowerBound,
            let newest = run.max(by: { parts[$0.index].responseTime < parts[$1.index].responseTime })
        else { return nil }
        var (slices, end): ([Slice], Int64) = ([], start)
        for part in run where part.range.upperBound > end {
            slices.append(Slice(index: part.index, range: end - part.range.lowerBound..<Int64(part.range.count)))
            end = part.range.upperBound
        }
        var response = parts[newest.index]
        var fields = response.head.fields
        // Digests of the whole are taken from any part that has them.
        for field in run.flatMap({ parts[$0.index].head.fields.filter(isDigest) }) where !fields.contains(field.name) {
            fields.append(field)
        }
        response.head = holding(start..<end, of: length, fields: fields)
        response.bodyLength = end - start
        response.isInvalidated = run.contains { parts[$0.index].isInvalidated }
        return Joint(response: response, slices: slices)
    }

    private static func isDigest(_ field: HTTPField) -> Bool {
        BodyDigests.contentFields.contains(field.name.canonicalName) || field.name.canonicalName == "repr-digest"
    }
}
