// Response fields that name the origin, as clients of a gateway must see them (docs/guide/clients.md#gateways; RFC 9110 §10.2.2, §8.7;
// RFC 8288 §3; RFC 6265 §5.3).
package import HTTPTypes

extension GatewayAddress {
    /// Fields that may name the origin.
    private static let naming: [HTTPField.Name] = [
        .location, .contentLocation, .link, .refresh, .setCookie, .accessControlAllowOrigin, .wwwAuthenticate,
    ]
    /// Fields about other ways to the origin, which lead past the gateway or do not apply to its name.
    private static let leadingPast: [HTTPField.Name] = [.altSvc, .strictTransportSecurity]

    /// True if `fields` may differ between clients of the gateway and of the origin.
    package static func mayConcern(_ fields: HTTPFields) -> Bool {
        fields.contains { naming.contains($0.name) || leadingPast.contains($0.name) || isURL($0.value) }
    }

    /// True for a value that is an absolute URL, as that of `Next-Page`.
    private static func isURL(_ value: String) -> Bool {
        guard value.utf8.first.map({ $0 | 0x20 == UInt8(ascii: "h") }) == true else { return false }
        let start = value.prefix(8).lowercased()
        return (start.hasPrefix("http://") || start.hasPrefix("https://")) && !value.utf8.contains { $0 == 0x20 || $0 == FieldByte.comma }
    }

    /// Returns the fields with the gateway's address in place of the origin's.
    package func translated(_ fields: HTTPFields) -> HTTPFields {
        guard Self.mayConcern(fields) else { return fields }
        var translated = HTTPFields()
        translated.reserveCapacity(fields.count)
        for field in fields where !Self.leadingPast.contains(field.name) {
            guard let value = value(of: field) else {
                translated.append(field)
                continue
            }
            translated.append(HTTPField(name: field.name, value: value))
        }
        return translated
    }

    /// The translated value; nil if it stays.
    private func value(of field: HTTPField) -> String? {
        switch field.name {
        case .location, .contentLocation: translated(field.value)
        case .link: link(field.value)
        case .refresh: refresh(field.value)
        case .setCookie: cookie(field.value)
        case .wwwAuthenticate: realm(field.value)
        case .accessControlAllowOrigin: field.value == origin.url ? root : nil
        default: Self.isURL(field.value) ? translated(field.value) : nil
        }
    }

    private func link(_ value: String) -> String {
        var result = ""
        var rest = Substring(value)
        while let open = rest.firstIndex(of: "<"), let close = rest[open...].firstIndex(of: ">") {
            let reference = String(rest[rest.index(after: open)..<close])
            result += rest[...open] + (translated(reference) ?? reference) + ">"
            rest = rest[rest.index(after: close)...]
        }
        return result + rest
    }

    /// `Bearer realm="https://…"`, where a client gets a token (https://distribution.github.io/distribution/spec/auth/token).
    private func realm(_ value: String) -> String? {
        guard let name = value.firstRange(of: "realm=\""), let end = value[name.upperBound...].firstIndex(of: "\"") else { return nil }
        let url = String(value[name.upperBound..<end])
        guard Self.isURL(url), let translated = translated(url) else { return nil }
        return "\(value[..<name.upperBound])\(translated)\(value[end...])"
    }

    /// `5; url=https://…`, the URL in quotes or not.
    private func refresh(_ value: String) -> String? {
        guard let name = value.lowercased().firstRange(of: "url="), value.utf8.count == value.lowercased().utf8.count else { return nil }
        let offset = value.lowercased().utf8.distance(from: value.lowercased().startIndex, to: name.upperBound)
        let start = value.utf8.index(value.startIndex, offsetBy: offset)
        let quote = value[start...].first.flatMap { "\"'".contains($0) ? String($0) : nil } ?? ""
        let reference = value[start...].dropFirst(quote.count).prefix { quote.isEmpty || String($0) != quote }
        return translated(String(reference)).map { value[..<start] + quote + $0 + quote }
    }

    // MARK: cookies

    /// A cookie of the origin's domain belongs to the gateway's host. Over plain HTTP it loses `Secure`, and what needs `Secure`; a name
    /// with the prefix `__Secure-` or `__Host-` keeps it, because clients accept such a cookie only so.
    private func cookie(_ value: String) -> String {
        var parts = value.split(separator: ";", omittingEmptySubsequences: false)
        let name = FieldList.trimmed(parts.first ?? "").lowercased()
        let keepsSecure = isSecure || name.hasPrefix("__secure-") || name.hasPrefix("__host-")
        parts = parts.enumerated().filter { index, part in
            index == 0 || !isDropped(attribute: FieldList.trimmed(part).lowercased(), keepsSecure: keepsSecure)
        }.map(\.element)
        if !(prefix.isEmpty && basePath.isEmpty), !name.hasPrefix("__host-") {
            parts = parts.map { Substring(prefixedPath($0) ?? String($0)) }
        }
        return parts.joined(separator: ";")
    }

    /// `Path=/x` below the gateway's prefix; nil for another attribute. A path above `basePath` is the whole gateway.
    private func prefixedPath(_ part: Substring) -> String? {
        let halves = FieldList.trimmed(part).split(separator: "=", maxSplits: 1).map { FieldList.trimmed($0) }
        guard halves.count == 2, halves[0].lowercased() == "path", halves[1].hasPrefix("/") else { return nil }
        let path = String(halves[1])
        let isAbove = path == "/" || (basePath + "/").hasPrefix(path.hasSuffix("/") ? path : path + "/")
        return " Path=\(prefix)\(isAbove ? "/" : inside(path) ?? path)"
    }

    private func isDropped(attribute: String, keepsSecure: Bool) -> Bool {
        let halves = attribute.split(separator: "=", maxSplits: 1).map { FieldList.trimmed($0) }
        switch halves.first {
        case "domain": return halves.count == 2 && isDomain(halves[1])
        case "secure", "partitioned": return !keepsSecure
        case "samesite": return !keepsSecure && halves.last == "none"
        default: return false
        }
    }

    /// True if the origin's host is `domain` or below it.
    private func isDomain(_ domain: Substring) -> Bool {
        let domain = domain.hasPrefix(".") ? domain.dropFirst() : domain
        return origin.host == domain || origin.host.hasSuffix("." + domain)
    }
}
