// Targeted cache control fields: directives for caches like this one, which override Cache-Control and Expires (RFC 9213).
package import HTTPTypes
import RawStructuredFieldValues

extension CacheControl {
    /// The targeted fields this cache obeys, in order of precedence: its own, then `CDN-Cache-Control`, because declaring an upstream makes
    /// this cache one that the origin's operator placed in front of it (RFC 9213 §2.2, §3.1).
    package static let targetedFieldNames = ["rockpool-cache-control", "cdn-cache-control"]

    /// The directives that govern a response: from the first targeted field that is present, valid and not empty, else from
    /// `Cache-Control`.
    package static func governing(in fields: HTTPFields) -> (directives: CacheControl, isTargeted: Bool) {
        for name in targetedFieldNames {
            if let value = fields.value(of: name), let directives = CacheControl(targeted: value) { return (directives, true) }
        }
        return (CacheControl(fields), false)
    }

    /// Directives with a number of seconds as their value.
    private static let numeric: Set<String> = ["max-age", "s-maxage", "stale-while-revalidate", "stale-if-error"]

    /// Parses a structured dictionary; nil if the value is not a dictionary, is empty, or has a non-integer where seconds are required
    /// (RFC 9213 §2.1).
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
