// Joins parts of one representation that are stored separately (RFC 9111 §3.4, RFC 9110 §15.3.7.3).
import HTTPTypes

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

    // MARK: runs

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
