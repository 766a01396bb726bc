// The directives meant for caches like this one, in fields that overrule Cache-Control and Expires (RFC 9213).
package import HTTPTypes
import RawStructuredFieldValues

extension CacheControl {
    /// The fields that are addressed to us, in order: ours, then that of the caches an origin's owner has set before it (RFC 9213 §2.2,
    /// §3.1), which is what declaring an upstream makes us.
    package static let targetedFieldNames = ["rockpool-cache-control", "cdn-cache-control"]

    /// What governs a response: the first targeted field that is there, valid and not empty, else `Cache-Control`.
    package static func governing(_ fields: HTTPFields) -> (directives: CacheControl, isTargeted: Bool) {
        for name in targetedFieldNames {
            if let value = fields.value(of: name), let directives = CacheControl(targeted: value) { return (directives, true) }
        }
        return (CacheControl(fields), false)
    }

    /// Directives whose value is a number of seconds.
    private static let numeric: Set<String> = ["max-age", "s-maxage", "stale-while-revalidate", "stale-if-error"]

    /// The members of a structured dictionary; nil when it is none, or empty, or a number of seconds is none (RFC 9213 §2.1).
    private init?(targeted value: String) {
        var parser = StructuredFieldValueParser(Array(value.utf8))
        guard let members = try? parser.parseDictionaryFieldValue(), !members.isEmpty else { return nil }
        var rewritten: [String] = []
        for (name, member) in members {
            guard case .item(let item) = member else {
                if Self.numeric.contains(name) { return nil }
                rewritten.append("\(name)=?")
                continue
            }
            if Self.numeric.contains(name) {
                guard case .integer = item.rfc9651BareItem else { return nil }
            }
            switch item.rfc9651BareItem {
            case .bool(true): rewritten.append(name)
            case .bool(false): continue
            case .integer(let number): rewritten.append("\(name)=\(number)")
            case .string(let text): rewritten.append("\(name)=\(StructuredText.string(text))")
            case .token(let text): rewritten.append("\(name)=\(text)")
            default: rewritten.append("\(name)=?")
            }
        }
        self.init([.cacheControl: rewritten.joined(separator: ", ")])
    }
}
