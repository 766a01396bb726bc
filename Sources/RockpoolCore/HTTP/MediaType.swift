// What a message says its content is, as far as telling a page from data needs it (RFC 9110 §8.3.1).
package import HTTPTypes

/// The content type of a message.
package enum MediaType {
    /// `type/subtype` in lower case; nil where no type is named.
    static func essence(_ fields: HTTPFields) -> String? {
        fields[.contentType].flatMap(essence(of:))
    }

    /// Of a field's value.
    static func essence(of value: String) -> String? {
        let essence = FieldList.trimmed(value.prefix { $0 != ";" && $0 != "," }).lowercased()
        return essence.isEmpty ? nil : essence
    }

    /// Whether the content is JSON, of whatever kind (RFC 6839 §3.1).
    package static func isJSON(_ fields: HTTPFields) -> Bool {
        essence(fields).map { $0 == "application/json" || $0 == "text/json" || $0.hasSuffix("+json") } ?? false
    }

    /// Whether it is an HTML page, which is what portals and login forms are.
    package static func isPage(_ fields: HTTPFields) -> Bool { essence(fields).map(isPage) ?? false }

    static func isPage(_ essence: String) -> Bool { essence == "text/html" || essence == "application/xhtml+xml" }

    /// What content of a type is, coarsely: another kind in the place of one is no new version of it.
    static func kind(of essence: String) -> String {
        if isPage(essence) { return "page" }
        if essence.hasSuffix("/json") || essence.hasSuffix("+json") { return "json" }
        let type = String(essence.prefix { $0 != "/" })
        return ["image", "audio", "video", "font"].contains(type) ? type : essence
    }

    /// Whether one of the ranges of an `Accept` has the content's type in it, whatever its weight. JSON of any kind is JSON.
    static func isAccepted(_ fields: HTTPFields, by accept: String) -> Bool {
        let type = essence(fields)
        return FieldList.members(of: accept).contains { member in
            guard let range = essence(of: String(member)) else { return false }
            if range == "*/*" { return true }
            guard let type else { return false }
            if range.hasSuffix("/*") { return type.hasPrefix(range.dropLast()) }
            return range == type || range.hasSuffix("json") && type.hasSuffix("json")
        }
    }

    /// Whether a page would be no surprise: the client names HTML in `Accept`.
    static func isAskedForPages(_ request: RequestHead) -> Bool { request.fields[.accept]?.lowercased().contains("html") ?? false }
}
