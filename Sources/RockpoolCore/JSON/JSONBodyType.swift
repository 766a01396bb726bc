// The JSON format of a request's content type (RFC 8259 §11, RFC 6839 §3.1, RFC 7396 §4, RFC 6902 §6).

enum JSONBodyType: Hashable {
    /// `application/json`; in a PATCH, an object of that type is a merge patch by convention.
    case json
    /// Another `+json` type: a representation; in a PATCH, members of it.
    case otherJSON
    case mergePatch
    case jsonPatch
    /// Not JSON.
    case other

    /// The type for a `Content-Type` value; a body without one is treated as JSON if it parses.
    init(_ contentType: String?) {
        switch contentType.map({ MediaType.essence(of: $0) ?? "" }) {
        case nil, "application/json", "text/json": self = .json
        case "application/merge-patch+json": self = .mergePatch
        case "application/json-patch+json": self = .jsonPatch
        // What is called a patch has rules of its own.
        case let type?: self = type.hasSuffix("+json") && !type.contains("-patch") ? .otherJSON : .other
        }
    }
}
