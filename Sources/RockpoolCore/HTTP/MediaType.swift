// What a message says its content is, as far as telling a page from data needs it (RFC 9110 §8.3.1).
import HTTPTypes

enum MediaType {
    /// `type/subtype` in lower case; nil where no type is named.
    static func essence(_ fields: HTTPFields) -> String? {
        guard let value = fields[.contentType] else { return nil }
        let essence = FieldList.trimmed(value.prefix { $0 != ";" && $0 != "," }).lowercased()
        return essence.isEmpty ? nil : essence
    }

    /// Whether it is an HTML page, which is what portals and login forms are.
    static func isPage(_ fields: HTTPFields) -> Bool { essence(fields).map(isPage) ?? false }

    static func isPage(_ essence: String) -> Bool { essence == "text/html" || essence == "application/xhtml+xml" }
}
