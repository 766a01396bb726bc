// Normalises request field values, so that values with the same meaning select the same variant (RFC 9111 §4.1).
import HTTPTypes

enum VaryNormalization {
    /// `value` in the form used for selection. Of fields with unknown syntax only surrounding whitespace is removed.
    static func normalized(_ value: String, of name: HTTPField.Name) -> String {
        switch name {
        // No coding or language has a quotation mark: in another order it would take in what followed it.
        case .acceptEncoding where value.utf8.contains(0x22), .acceptLanguage where value.utf8.contains(0x22):
            String(FieldList.trimmed(value[...]))
        case .acceptEncoding: acceptEncoding(value)
        case .acceptLanguage: acceptLanguage(value)
        case .accept: FieldList.members(of: value).joined(separator: ", ")
        case .origin: String(FieldList.trimmed(value[...])).lowercased()
        case .cookie: CookieCrumbs.removed(from: String(FieldList.trimmed(value[...])))
        default: String(FieldList.trimmed(value[...]))
        }
    }

    /// The accepted codings, sorted by name: names are case-insensitive, `x-gzip` equals `gzip` (RFC 9110 §8.4.1.3, §12.5.3), and the
    /// client's preference among them does not change the content. A refusal by `q=0` is dropped, because an unlisted coding is refused
    /// anyway, unless it refers to `identity` or `*`, or `*` would otherwise accept the coding.
    static func acceptEncoding(_ value: String) -> String {
        if let plain = AcceptEncoding.plain(value) { return plain }
        let preferences = preferences(in: value)
        let takesAny = preferences.contains { $0.name == "*" && $0.weight != 0 }
        let codings = preferences.compactMap { preference -> String? in
            guard let weight = preference.weight else { return preference.text }
            let name = ["x-gzip", "x-compress"].contains(preference.name) ? String(preference.name.dropFirst(2)) : preference.name
            if weight > 0 { return name }
            return takesAny || name == "identity" || name == "*" ? name + ";q=0" : nil
        }
        return Set(codings).sorted().joined(separator: ", ")
    }

    /// Ranges in order of their weights. The weights themselves are dropped, except the `q=0` of refused ranges. The order of equal weights
    /// is kept, because some servers prefer the first (RFC 9110 §12.5.4).
    static func acceptLanguage(_ value: String) -> String {
        let preferences = preferences(in: value)
        guard preferences.allSatisfy({ $0.weight != nil }) else { return preferences.map(\.text).joined(separator: ", ") }
        return preferences.enumerated()
            .sorted { ($1.element.weight ?? 0, $0.offset) < ($0.element.weight ?? 0, $1.offset) }
            .map { $0.element.weight == 0 ? $0.element.name + ";q=0" : $0.element.name }.joined(separator: ", ")
    }

    /// The single language range, in lower case, with a greater weight than every other; nil if there is none, or it is `*`.
    static func favouriteLanguage(in value: String) -> String? {
        let preferences = preferences(in: value)
        guard let best = preferences.max(by: { ($0.weight ?? 0) < ($1.weight ?? 0) }), let weight = best.weight, weight > 0,
            best.name != "*", preferences.allSatisfy({ $0.weight != nil }), preferences.count(where: { $0.weight == weight }) == 1
        else { return nil }
        return best.name
    }

    /// One member of a list of preferences.
    struct Preference {
        /// In lower case.
        let name: String
        /// Thousandths; nil if the member is unreadable.
        let weight: Int?
        /// The whole member in lower case, without spaces around its parameters.
        let text: String
    }

    static func preferences(in value: String) -> [Preference] {
        FieldList.members(of: value).map { member in
            let member = member.lowercased()
            guard member.utf8.contains(0x3B) else { return Preference(name: member, weight: 1000, text: member) }
            let parts = member.split(separator: ";", omittingEmptySubsequences: false).map { FieldList.trimmed($0) }
            let isReadable = parts.count == 2 && !parts[0].isEmpty && parts[1].hasPrefix("q=")
            let weight = isReadable ? thousandths(of: parts[1].dropFirst(2)) : nil
            return Preference(name: String(parts[0]), weight: weight, text: parts.joined(separator: ";"))
        }
    }

    /// A weight in thousandths; nil if it is not a valid weight (RFC 9110 §12.4.2).
    private static func thousandths(of weight: Substring) -> Int? {
        let parts = weight.split(separator: ".", omittingEmptySubsequences: false)
        guard let whole = parts.first, whole == "0" || whole == "1", parts.count <= 2 else { return nil }
        let fraction = parts.count == 2 ? parts[1] : ""
        guard fraction.utf8.count <= 3, fraction.utf8.allSatisfy(FieldByte.isDigit) else { return nil }
        let padded = fraction + String(repeating: "0", count: 3 - fraction.utf8.count)
        guard let value = Int(whole + padded), value <= 1000 else { return nil }
        return value
    }
}
