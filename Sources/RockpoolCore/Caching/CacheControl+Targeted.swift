// The directives meant for this cache alone, in a field that overrules Cache-Control and Expires (RFC 9213).
package import HTTPTypes
import RawStructuredFieldValues

extension CacheControl {
    /// The field that is addressed to us.
    package static let targetedFieldName = "rockpool-cache-control"

    /// What governs a response: the targeted field when it is there, valid and not empty, else `Cache-Control`.
    package static func governing(_ fields: HTTPFields) -> (directives: CacheControl, isTargeted: Bool) {
        if let value = fields.value(of: targetedFieldName), let directives = CacheControl(targeted: value) { return (directives, true) }
        return (CacheControl(fields), false)
    }

    /// The members of a structured dictionary; nil when it is none, or empty. Members of an unexpected type count as malformed ones do.
    private init?(targeted value: String) {
        var parser = StructuredFieldValueParser(Array(value.utf8))
        guard let members = try? parser.parseDictionaryFieldValue(), !members.isEmpty else { return nil }
        var rewritten: [String] = []
        for (name, member) in members {
            guard case .item(let item) = member else { return nil }
            switch item.rfc9651BareItem {
            case .bool(true): rewritten.append(name)
            case .bool(false): continue
            case .integer(let number): rewritten.append("\(name)=\(number)")
            case .string(let text): rewritten.append("\(name)=\"\(text)\"")
            case .token(let text): rewritten.append("\(name)=\(text)")
            default: rewritten.append("\(name)=?")
            }
        }
        self.init([.cacheControl: rewritten.joined(separator: ", ")])
    }
}
