// Rewrites request field values that mean the same into the same text, and no others (RFC 9111 §4.1).
import HTTPTypes

enum VaryNormalization {
    /// `value` in the form selection compares. Fields whose syntax is not known keep theirs, but for whitespace at the ends.
    static func normalized(_ value: String, of name: HTTPField.Name) -> String {
        switch name {
        case .acceptEncoding: acceptEncoding(value)
        case .acceptLanguage: acceptLanguage(value)
        case .accept: FieldList.members(of: value).joined(separator: ", ")
        case .origin: String(FieldList.trimmed(value[...])).lowercased()
        default: String(FieldList.trimmed(value[...]))
        }
    }

    /// Codings are case-insensitive and their order says nothing; `x-gzip` is `gzip` (RFC 9110 §8.4.1.3, §12.5.3).
    static func acceptEncoding(_ value: String) -> String {
        if let plain = AcceptEncoding.plain(value) { return plain }
        return preferences(value).map(\.text)
            .map { $0.hasPrefix("x-gzip") || $0.hasPrefix("x-compress") ? String($0.dropFirst(2)) : $0 }
            .sorted().joined(separator: ", ")
    }

    /// Ranges in order of their weights; the order among equal ones stays, for some servers prefer the first (RFC 9110 §12.5.4).
    static func acceptLanguage(_ value: String) -> String {
        let preferences = preferences(value)
        guard preferences.allSatisfy({ $0.weight != nil }) else { return preferences.map(\.text).joined(separator: ", ") }
        return preferences.enumerated()
            .sorted { ($1.element.weight ?? 0, $0.offset) < ($0.element.weight ?? 0, $1.offset) }
            .map(\.element.text).joined(separator: ", ")
    }

    /// The one language range, in lower case, that weighs more than every other; nil when there is none, or it is `*`.
    static func favouriteLanguage(_ value: String) -> String? {
        let preferences = preferences(value)
        guard let best = preferences.max(by: { ($0.weight ?? 0) < ($1.weight ?? 0) }), let weight = best.weight, weight > 0,
            best.name != "*", preferences.allSatisfy({ $0.weight != nil }), preferences.count(where: { $0.weight == weight }) == 1
        else { return nil }
        return best.name
    }

    /// One member of a list of preferences.
    private struct Preference {
        /// In lower case.
        let name: String
        /// Thousandths; nil when it cannot be read.
        let weight: Int?
        /// With the weight in its shortest form: `gzip;q=1.0` is `gzip`, `br; q=0.50` is `br;q=0.5`.
        let text: String
    }

    private static func preferences(_ value: String) -> [Preference] {
        FieldList.members(of: value).map { member in
            let member = member.lowercased()
            guard member.utf8.contains(0x3B) else { return Preference(name: member, weight: 1000, text: member) }
            let parts = member.split(separator: ";", omittingEmptySubsequences: false).map { FieldList.trimmed($0) }
            guard parts.count == 2, parts[1].hasPrefix("q="), let weight = thousandths(parts[1].dropFirst(2)) else {
                return Preference(name: String(parts[0]), weight: nil, text: parts.joined(separator: ";"))
            }
            var digits = String(weight + 1000).dropFirst()
            while digits.last == "0" { digits.removeLast() }
            let shortest = weight == 1000 ? "" : digits.isEmpty ? ";q=0" : ";q=0.\(digits)"
            return Preference(name: String(parts[0]), weight: weight, text: parts[0] + shortest)
        }
    }

    /// A weight in thousandths; nil when it is none (RFC 9110 §12.4.2).
    private static func thousandths(_ weight: Substring) -> Int? {
        let parts = weight.split(separator: ".", omittingEmptySubsequences: false)
        guard let whole = parts.first, whole == "0" || whole == "1", parts.count <= 2 else { return nil }
        let fraction = parts.count == 2 ? parts[1] : ""
        guard fraction.utf8.count <= 3, fraction.utf8.allSatisfy(FieldByte.isDigit) else { return nil }
        let padded = fraction + String(repeating: "0", count: 3 - fraction.utf8.count)
        guard let value = Int(whole + padded), value <= 1000 else { return nil }
        return value
    }
}
