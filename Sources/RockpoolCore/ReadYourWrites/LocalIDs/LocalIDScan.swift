// The local ids of a request: their places, found by searching the bytes, without a schema, and their replacement by server ids just
// before it is sent (docs/outbox.md#local-ids).
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

    /// A client's key goes out as it came.
    static func found(in field: HTTPField) -> [LocatedLocalID] {
        if field.name == .idempotencyKey { return [] }
        return LocalIDOccurrence.all(in: field.valueBytes).map { LocatedLocalID(occurrence: $0, place: .header(field.name.canonicalName)) }
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

// MARK: - Places

/// A place within a request (docs/outbox.md#schema, docs/outbox.md#local-ids).
package enum LocalIDPlace: Hashable, Sendable {
    /// A segment of the path, from 0: in `/v1/notes/17` the id is segment 2.
    case path(segment: Int)
    /// A parameter of the query, by its decoded name.
    case query(String)
    /// A string of a JSON body, or a member's name.
    case json(JSONPointer)
    /// A field of an urlencoded form, by its decoded name.
    case form(String)
    /// The value of a header field, by its name in lower case.
    case header(String)
    /// Anywhere in a body of another kind.
    case body

    /// `path:2`, `query:parent`, `json:/list/id`, `form:x`, `header:x` or `body`.
    package var text: String {
        switch self {
        case .path(let segment): "path:\(segment)"
        case .query(let name): "query:\(name)"
        case .json(let pointer): "json:\(pointer.text)"
        case .form(let name): "form:\(name)"
        case .header(let name): "header:\(name)"
        case .body: "body"
        }
    }

    /// Parses the format of `text`; nil for anything else.
    package init?(_ text: String) {
        guard let colon = text.unicodeScalars.firstIndex(of: ":") else {
            guard text == "body" else { return nil }
            self = .body
            return
        }
        let rest = String(text.unicodeScalars[colon...].dropFirst())
        switch text[..<colon] {
        case "path":
            guard rest[...].isDigits, let segment = Int(rest) else { return nil }
            self = .path(segment: segment)
        case "query": self = .query(rest)
        case "json":
            guard let pointer = JSONPointer(rest) else { return nil }
            self = .json(pointer)
        case "form": self = .form(rest)
        case "header":
            guard !rest.isEmpty else { return nil }
            self = .header(rest.lowercased())
        default: return nil
        }
    }
}

/// One local id at one place of a request.
package struct LocalIDReference: Hashable, Sendable {
    package var id: LocalID
    package var place: LocalIDPlace

    package init(id: LocalID, place: LocalIDPlace) {
        self.id = id
        self.place = place
    }
}

// MARK: - Substitution

/// The local ids of a request without a server id that can be written in their place. The request must not be sent.
package struct UnmappedLocalIDs: Error, Hashable {
    /// The ids, each once, in the order of the request.
    package var ids: [LocalID]

    package init(ids: [LocalID]) { self.ids = ids }
}

/// Replaces local ids by server ids.
package enum LocalIDSubstitution {
    /// Returns the request with every local id that the scan finds replaced by its server id in `map`, escaped as the place requires; every
    /// other byte stays as it is. A JSON value that is nothing but one local id gets the type of the server id.
    ///
    /// When the body contains a local id, its digests (`Content-Digest`, `Repr-Digest`, `Digest`, `Content-MD5`) are removed, since they no
    /// longer match, and so is `Content-Length`, which the sender sets.
    ///
    /// Throws when a local id is not in `map`, or its server id cannot be written there: a control character or a separator in a header
    /// field or in a body of unknown syntax, `..` as a path segment.
    package static func apply(
        head: RequestHead, body: [UInt8], map: [LocalID: ServerID]
    ) throws(UnmappedLocalIDs) -> (head: RequestHead, body: [UInt8]) {
        guard LocalIDScan.mayOccur(head: head, body: body) else { return (head, body) }
        var splicer = LocalIDSplicer(map: map)
        var new = head
        let target = Array(head.target.utf8)
        new.target = String(decoding: splicer.spliced(target, at: LocalIDScan.found(inTarget: target)), as: UTF8.self)
        new.fields = HTTPFields(head.fields.map { splicer.spliced($0) })
        let found = LocalIDScan.found(inBody: body, of: head.fields)
        let newBody = splicer.spliced(body, at: found)
        if !found.isEmpty { new.fields.removeAll { describesBody.contains($0.name.canonicalName) } }
        guard splicer.unmapped.isEmpty else { throw UnmappedLocalIDs(ids: splicer.unmapped) }
        return (new, newBody)
    }

    private static let describesBody: Set<String> = ["content-digest", "repr-digest", "digest", "content-md5", "content-length"]
}

/// Splices replacements into bytes, and collects the ids without one.
private struct LocalIDSplicer {
    let map: [LocalID: ServerID]
    private(set) var unmapped: [LocalID] = []

    init(map: [LocalID: ServerID]) { self.map = map }

    mutating func spliced(_ bytes: [UInt8], at found: [LocatedLocalID]) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(bytes.count)
        var copied = 0
        for one in found {
            let id = one.occurrence.id
            guard let replacement = map[id]?.written(at: one) else {
                if !unmapped.contains(id) { unmapped.append(id) }
                continue
            }
            let replaced = one.value ?? one.occurrence.range
            out += bytes[copied..<replaced.lowerBound]
            out += replacement
            copied = replaced.upperBound
        }
        return out + bytes[copied...]
    }

    mutating func spliced(_ field: HTTPField) -> HTTPField {
        let found = LocalIDScan.found(in: field)
        if found.isEmpty { return field }
        var new = HTTPField(name: field.name, lenientValue: spliced(field.valueBytes, at: found))
        new.indexingStrategy = field.indexingStrategy
        return new
    }
}
