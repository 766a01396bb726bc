// The place of a local id in a request, which `op_ref` stores and which selects the escaping of its replacement (docs/outbox.md#schema,
// docs/outbox.md#local-ids).

/// A place within a request.
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
