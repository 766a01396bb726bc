// Rewrites request field values that mean the same into the same text, and no others (RFC 9111 §4.1).
import HTTPTypes

enum VaryNormalization {
    /// `value` in the form selection compares. Fields whose syntax is not known keep theirs, but for whitespace at the ends.
    static func normalized(_ value: String, of name: HTTPField.Name) -> String {
        switch name {
        case .acceptEncoding: acceptEncoding(value)
        case .acceptLanguage: preferences(value).joined(separator: ", ")
        case .accept: FieldList.members(of: value).joined(separator: ", ")
        case .origin: String(FieldList.trimmed(value[...])).lowercased()
        default: String(FieldList.trimmed(value[...]))
        }
    }

    /// Codings are case-insensitive and their order says nothing; `x-gzip` is `gzip` (RFC 9110 §8.4.1.3, §12.5.3).
    static func acceptEncoding(_ value: String) -> String {
        if let plain = AcceptEncoding.plain(value) { return plain }
        return preferences(value)
            .map { $0.hasPrefix("x-gzip") || $0.hasPrefix("x-compress") ? String($0.dropFirst(2)) : $0 }
            .sorted().joined(separator: ", ")
    }

    /// Members in lower case with their weight in its shortest form: `gzip;q=1.0` is `gzip`, `br; q=0.50` is `br;q=0.5`.
    private static func preferences(_ value: String) -> [String] {
        FieldList.members(of: value).map { member in
            let hasWeight = member.utf8.contains(0x3B)
            guard hasWeight else { return member.lowercased() }
            let parts = member.lowercased().split(separator: ";", omittingEmptySubsequences: false).map { FieldList.trimmed($0) }
            guard parts.count == 2, parts[1].hasPrefix("q="), let weight = shortened(parts[1].dropFirst(2)) else {
                return parts.joined(separator: ";")
            }
            return weight == "1" ? String(parts[0]) : "\(parts[0]);q=\(weight)"
        }
    }

    /// A weight without trailing zeros; nil when it is none (RFC 9110 §12.4.2).
    private static func shortened(_ weight: Substring) -> Substring? {
        let parts = weight.split(separator: ".", omittingEmptySubsequences: false)
        guard let whole = parts.first, whole == "0" || whole == "1", parts.count <= 2 else { return nil }
        var fraction = parts.count == 2 ? parts[1] : ""
        guard fraction.utf8.count <= 3, fraction.utf8.allSatisfy(FieldByte.isDigit) else { return nil }
        while fraction.last == "0" { fraction.removeLast() }
        if fraction.isEmpty { return whole }
        return whole == "0" ? "0." + fraction : nil
    }
}
