// What a request's content type makes of its JSON (RFC 8259 §11, RFC 6839 §3.1, RFC 7396 §4, RFC 6902 §6).

enum JSONBodyType: Hashable {
    /// `application/json`; in a PATCH, where an object of that type is a merge patch by custom.
    case json
    /// Some `+json`: a representation, of whose patches nothing is known.
    case otherJSON
    case mergePatch
    case jsonPatch
    /// No JSON.
    case other

    /// Of a `Content-Type` field's value; without one a body is taken for JSON, which it is if it parses.
    init(_ contentType: String?) {
        switch contentType.map({ MediaType.essence(of: $0) ?? "" }) {
        case nil, "application/json", "text/json": self = .json
        case "application/merge-patch+json": self = .mergePatch
        case "application/json-patch+json": self = .jsonPatch
        case let type?: self = type.hasSuffix("+json") ? .otherJSON : .other
        }
    }
}
