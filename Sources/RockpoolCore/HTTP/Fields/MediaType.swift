// Parses and classifies a message's media type, mainly to distinguish pages from data (RFC 9110 §8.3.1).
package import HTTPTypes

/// The content type of a message.
package enum MediaType {
    /// `type/subtype` in lower case; nil if no type is given.
    static func essence(of fields: HTTPFields) -> String? {
        fields.value(of: "content-type").flatMap(essence(of:))
    }

    /// `type/subtype` of a field's value.
    static func essence(of value: String) -> String? {
        let end = value.utf8.firstIndex { $0 == UInt8(ascii: ";") || $0 == FieldByte.comma } ?? value.endIndex
        let essence = FieldList.trimmed(value[..<end]).lowercased()
        return essence.isEmpty ? nil : essence
    }

    /// True if the content is JSON of any kind (RFC 6839 §3.1).
    package static func isJSON(_ fields: HTTPFields) -> Bool {
        essence(of: fields).map { $0 == "application/json" || $0 == "text/json" || $0.hasSuffix("+json") } ?? false
    }

    /// True if the content is an HTML page, as portals and login forms are.
    package static func isPage(_ fields: HTTPFields) -> Bool { essence(of: fields).map(isPage) ?? false }

    static func isPage(_ essence: String) -> Bool { essence == "text/html" || essence == "application/xhtml+xml" }

    /// True if a range of the `Accept` field matches the content's type, whatever its weight. All JSON types match each other.
    static func isAccepted(_ fields: HTTPFields, by accept: String) -> Bool {
        let type = essence(of: fields)
        return FieldList.members(of: accept).contains { member in
            guard let range = essence(of: String(member)) else { return false }
            if range == "*/*" { return true }
            guard let type else { return false }
            if range.hasSuffix("/*") { return type.hasPrefix(range.dropLast()) }
            return range == type || range.hasSuffix("json") && type.hasSuffix("json")
        }
    }
}
