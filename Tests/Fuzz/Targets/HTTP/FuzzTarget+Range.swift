// Byte ranges: never a byte too many, never the same byte twice, and parts that fit together (RFC 9110 §14, RFC 9111 §3.4).
import HTTPTypes
import RockpoolCore

extension FuzzTarget {
    /// Lines: Range, If-Range, the stored length, the Content-Range of a stored part, the one of another part, ETag.
    static func range(_ input: FuzzInput) throws(BrokenProperty) {
        let length = max(0, input.number(2))
        var fields: HTTPFields = [.range: input.text(0)]
        if !input.bytes(1).isEmpty { fields[.ifRange] = input.text(1) }
        let request = RequestHead(
            method: .get, origin: OriginAddress(scheme: .http, host: "a.test"), target: "/", fields: fields)
        if let set = ByteRangeSet(input.text(0)) { try resolves(set, length: length) }
        let own: HTTPFields = [.eTag: input.text(5), .date: "Sun, 06 Nov 1994 08:49:37 GMT"]
        try answers(request, from: ResponseHead(status: 200, fields: own), length: length)
        guard let part = ContentRange(input.text(3)) else { return }
        try hold(ContentRange(part.fieldValue) == part, "a Content-Range is read back")
        var head = ResponseHead(status: 206, fields: own)
        head.fields[.contentRange] = part.fieldValue
        try answers(request, from: head, length: Int64(part.range?.count ?? 0))
        guard let more = ContentRange(input.text(4)) else { return }
        try combines(head, part, with: more)
    }

    private static func resolves(_ set: ByteRangeSet, length: Int64) throws(BrokenProperty) {
        let ranges = set.resolved(length: length)
        try hold(ranges.allSatisfy { !$0.isEmpty && $0.lowerBound >= 0 && $0.upperBound <= length }, "no range leaves the body")
        let sorted = ranges.sorted { $0.lowerBound < $1.lowerBound }
        try hold(zip(sorted, sorted.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound }, "no two ranges touch")
        guard length <= 512 else { return }
        let asked = Set(set.ranges.compactMap { $0.resolved(length: length) }.joined())
        try hold(asked == Set(ranges.joined()), "what is sent is what was asked for")
    }

    private static func answers(_ request: RequestHead, from stored: ResponseHead, length: Int64) throws(BrokenProperty) {
        switch RangeReply.decide(request: request, stored: stored, bodyLength: length, boundary: "b") {
        case .whole: try hold(stored.status == 200, "no part is sent as the whole")
        case .part(let head, let range):
            try hold(range.lowerBound >= 0 && range.upperBound <= length && !range.isEmpty, "a part is within what is stored")
            let place = head.fields[.contentRange].flatMap { ContentRange($0) }
            try hold(head.status == 206 && place?.range?.count == range.count, "a part says where it belongs")
            try hold(head.fields[.contentLength] == String(range.count), "a part says how long it is")
        case .parts(let head, let parts, let closing):
            let total = parts.reduce(Int64(closing.utf8.count)) { $0.addedClamped($1.length) }
            try hold(head.fields[.contentLength] == String(total), "parts say how long they are")
            try hold(parts.count > 1 && parts.count <= ByteRangeSet.limit, "parts are few")
            try hold(parts.allSatisfy { $0.range.lowerBound >= 0 && $0.range.upperBound <= length }, "parts are within what is stored")
        case .unsatisfiable(let head):
            try hold(head.status == 416 && head.fields[.contentRange] == "bytes */\(length)", "a 416 says how long the whole is")
        case nil: try hold(stored.status == 206, "a whole answers every range")
        }
    }

    private static func combines(_ head: ResponseHead, _ part: ContentRange, with more: ContentRange) throws(BrokenProperty) {
        var stored = StoredResponse(head: head, requestTime: .distantPast, responseTime: .distantPast)
        stored.bodyLength = Int64(part.range?.count ?? 0)
        var answer = ResponseHead(status: 206, fields: head.fields)
        answer.fields[.contentRange] = more.fieldValue
        guard let old = part.range, let new = more.range,
            let (response, pieces) = PartialResponse.combined(
                stored, with: answer, sent: Moment(at: .distantPast, tick: .first), responseTime: .distantPast)
        else { return }
        var position = min(old.lowerBound, new.lowerBound)
        for piece in pieces {
            // The position of the piece in the whole body: it must begin where the previous one ends.
            let (place, count) =
                switch piece {
                case .stored(let range): (old.lowerBound + range.lowerBound, Int64(range.count))
                case .received(let range): (new.lowerBound + range.lowerBound, Int64(range.count))
                }
            try hold(place == position && count > 0, "the pieces stand where they belong")
            position += count
        }
        try hold(position == max(old.upperBound, new.upperBound), "the pieces are all there is")
        try hold(part.length == more.length, "parts of two wholes are not put together")
        let isWhole = response.bodyLength == part.length
        try hold((response.head.status == 200) == isWhole, "only the whole is a 200")
    }
}
