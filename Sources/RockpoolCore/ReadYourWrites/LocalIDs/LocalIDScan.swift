// The local ids of a request and their places: dependencies are found by searching the bytes, without a schema (docs/outbox.md#local-ids).
import HTTPTypes

/// Finds local ids in a request.
package enum LocalIDScan {
    /// Returns every local id of the request, each once per place, in the order of path, query, header fields, body.
    ///
    /// A body is read as JSON when it parses as JSON, whatever its type (clients post JSON as forms and as text), otherwise as a form when
    /// its type is one, otherwise as bytes: multipart, text, JSON nested too deep or with a name twice. A compressed body
    /// (`Content-Encoding` other than `identity`) is not decoded: it is searched as bytes, and a compressed id is not found.
    package static func references(head: RequestHead, body: [UInt8]) -> [LocalIDReference] {
        guard mayOccur(head: head, body: body) else { return [] }
        let fields = head.fields.flatMap { found(in: $0) }
        let all = found(inTarget: Array(head.target.utf8)) + fields + found(inBody: body, of: head.fields)
        var seen: Set<LocalIDReference> = []
        return all.map { LocalIDReference(id: $0.occurrence.id, place: $0.place) }.filter { seen.insert($0).inserted }
    }

    /// True if the request contains a local id in the same sense. Parses and allocates nothing, because it runs for every write.
    package static func mayOccur(head: RequestHead, body: [UInt8]) -> Bool {
        if head.target.utf8.span.nextLocalID(from: 0) != nil || body.span.nextLocalID(from: 0) != nil { return true }
        return head.fields.contains { $0.value.utf8.span.nextLocalID(from: 0) != nil }
    }

    /// True if the body contains a local id.
    static func mayOccur(body: [UInt8]) -> Bool { body.span.nextLocalID(from: 0) != nil }
}

/// A local id with its place and the properties that determine the form of its replacement.
struct LocatedLocalID: Hashable, Sendable {
    var occurrence: LocalIDOccurrence
    var place: LocalIDPlace
    /// The bytes of the JSON value that is nothing but this id, quotes included; nil if it is part of something else.
    var value: Range<Int>?

    /// True if it is a JSON value: then a string or a number may replace it.
    var isWholeValue: Bool { value != nil }
}

extension LocalIDScan {
    static func found(inTarget target: [UInt8]) -> [LocatedLocalID] {
        let pathEnd = target.firstIndex(of: UInt8(ascii: "?")) ?? target.endIndex
        return LocalIDOccurrence.all(in: target).map { occurrence in
            let start = occurrence.range.lowerBound
            guard start < pathEnd else {
                return LocatedLocalID(occurrence: occurrence, place: .query(parameter(at: start, of: target[(pathEnd + 1)...])))
            }
            let slashes = target[..<start].dropFirst().count { $0 == UInt8(ascii: "/") }
            return LocatedLocalID(occurrence: occurrence, place: .path(segment: slashes))
        }
    }

    static func found(in field: HTTPField) -> [LocatedLocalID] {
        LocalIDOccurrence.all(in: field.valueBytes).map { LocatedLocalID(occurrence: $0, place: .header(field.name.canonicalName)) }
    }

    static func found(inBody body: [UInt8], of fields: HTTPFields) -> [LocatedLocalID] {
        let occurrences = LocalIDOccurrence.all(in: body)
        if occurrences.isEmpty { return [] }
        if isCompressed(fields) { return occurrences.map { LocatedLocalID(occurrence: $0, place: .body) } }
        if (try? JSONValue.parse(body)) != nil { return located(occurrences, inJSON: body) }
        guard MediaType.essence(of: fields) == "application/x-www-form-urlencoded" else {
            return occurrences.map { LocatedLocalID(occurrence: $0, place: .body) }
        }
        return occurrences.map {
            LocatedLocalID(occurrence: $0, place: .form(parameter(at: $0.range.lowerBound, of: body[...])))
        }
    }

    /// An id has no quote, and no letter outside of strings: each occurrence lies in exactly one string, or is a number.
    private static func located(_ occurrences: [LocalIDOccurrence], inJSON body: [UInt8]) -> [LocatedLocalID] {
        var located: [LocatedLocalID] = []
        var rest = occurrences[...]
        var walk = JSONTokenWalk(body)
        while let occurrence = rest.first, let token = walk.next() {
            guard token.content.upperBound > occurrence.range.lowerBound else { continue }
            let place = LocalIDPlace.json(walk.pointer)
            while let occurrence = rest.first, occurrence.range.lowerBound < token.content.upperBound {
                located.append(LocatedLocalID(occurrence: occurrence, place: place, value: value(of: token, as: occurrence, in: walk)))
                rest.removeFirst()
            }
        }
        return located
    }

    /// The bytes of a token that is nothing but an id.
    private static func value(of token: JSONTokenWalk.Found, as occurrence: LocalIDOccurrence, in walk: JSONTokenWalk) -> Range<Int>? {
        guard token.content == occurrence.range else { return nil }
        switch token.kind {
        case .name: return nil
        case .number: return token.content
        case .string:
            guard walk.text(token.content) == occurrence.id.text else { return nil }
            return token.content.lowerBound - 1..<token.content.upperBound + 1
        }
    }

    /// Returns the decoded name of the parameter at `index`.
    private static func parameter(at index: Int, of parameters: ArraySlice<UInt8>) -> String {
        let ampersand = UInt8(ascii: "&")
        let start = parameters[..<index].lastIndex(of: ampersand).map { $0 + 1 } ?? parameters.startIndex
        let name = parameters[start...].prefix { $0 != ampersand && $0 != FieldByte.equals }
        return String(decoding: FormEncoding.decoded(name), as: UTF8.self)
    }

    private static func isCompressed(_ fields: HTTPFields) -> Bool {
        FieldList.members(of: fields[.contentEncoding] ?? "").contains { $0.lowercased() != "identity" }
    }
}
