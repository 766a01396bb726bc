// A gateway as its clients see it, and the origin that it stands in for (docs/guide/clients.md#gateways).
package import HTTPTypes

/// Translates URLs of the origin to the gateway, and back.
package struct GatewayAddress: Hashable, Sendable {
    package let origin: OriginAddress
    /// `scheme://authority` that the client used for the gateway.
    package let root: String
    /// The beginning of the paths of this origin at the gateway, such as `/notes`; empty for a gateway of one upstream.
    package let prefix: String
    /// The beginning of the origin's paths that the gateway stands for, such as `/api/v2`; empty for all of them.
    package let basePath: String

    /// Nil if the client addressed the gateway by the origin's own name: then nothing has to be translated.
    package init?(origin: OriginAddress, base: String, prefix: String = "", basePath: String = "") {
        guard base != origin.url || !prefix.isEmpty || !basePath.isEmpty else { return nil }
        (self.origin, root, self.prefix, self.basePath) = (origin, base, prefix, basePath)
    }

    /// The URL that stands for the origin's.
    package var base: String { root + prefix }
    /// The URL that the gateway stands for.
    var originBase: String { origin.url + basePath }
    package var isSecure: Bool { root.hasPrefix("https://") }
    /// Host and port that the client used for the gateway.
    package var authority: Substring { root[(root.firstRange(of: "://")?.upperBound ?? root.startIndex)...] }

    /// Returns the URL at the gateway for a reference that names the origin; nil for any other reference, also a relative one. Where the
    /// gateway has a prefix, a reference that is an absolute path gets it. What is outside of `basePath` is named at the origin itself.
    ///
    /// A URL of the origin with the scheme `http` and the default port counts as the origin's own if the origin is `https` at its default
    /// port: servers behind a TLS terminator write it.
    package func translated(_ reference: String) -> String? {
        if reference.hasPrefix("/"), !reference.hasPrefix("//") {
            if basePath.isEmpty || reference.hasPrefix(RequestTarget.ownPath) { return prefix.isEmpty ? nil : prefix + reference }
            return inside(reference).map { prefix + $0 } ?? origin.url + reference
        }
        guard let start = reference.firstRange(of: "//")?.upperBound else { return nil }
        let scheme = reference[..<reference.index(start, offsetBy: -2)].lowercased()
        let rest = reference[start...]
        let named = rest.prefix { !"/?#".contains($0) }
        guard isOrigins(named, scheme: scheme) else { return nil }
        guard let path = inside(String(rest.dropFirst(named.count))) else { return nil }
        return (scheme.isEmpty ? "//" + authority + prefix : base) + path
    }

    /// The path at the gateway of one below `basePath`; nil for any other.
    func inside(_ path: String) -> String? { GatewayListener.removing(basePath, from: path) }

    func isOrigins(_ authority: Substring, scheme: String) -> Bool {
        let scheme = scheme.isEmpty ? origin.scheme.rawValue : String(scheme.dropLast())
        guard let known = OriginAddress.Scheme(rawValue: scheme),
            let address = HostAndPort(String(authority), defaultPort: known.defaultPort), address.host == origin.host
        else { return false }
        if known == origin.scheme { return address.port == origin.port }
        return known == .http && address.port == 80 && origin.port == OriginAddress.Scheme.https.defaultPort
    }
}

/// Response fields that name the origin, as clients of a gateway must see them (docs/guide/clients.md#gateways; RFC 9110 §10.2.2, §8.7; RFC
/// 8288 §3; RFC 6265 §5.3).
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

    // MARK: - Cookies

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

/// Fields of requests at a gateway (RFC 6454 §7, RFC 9110 §10.1.3, RFC 4918 §10.3; docs/reference/configuration.md#upstreams).
package enum GatewayFields {
    /// Rewrites `Origin`, `Referer`, `Destination` and the tags of `If` as `Host` is: a server compares them with its own name.
    /// - Parameters:
    ///   - host: The `Host` that the client used.
    ///   - prefix: The beginning of the origin's paths at the gateway.
    ///   - basePath: What stands before these paths at the origin.
    package static func rewrite(
        _ fields: inout HTTPFields, host: String, origin: OriginAddress, prefix: String = "", basePath: String = ""
    ) {
        guard fields.contains(where: { rewritten.contains($0.name.canonicalName) }) else { return }
        let place = Place(host: host, origin: origin, prefix: prefix, basePath: basePath)
        let names = fields.filter { rewritten.contains($0.name.canonicalName) }.map(\.name)
        for name in Set(names) {
            fields[values: name] = fields[values: name].map { value in
                name.canonicalName == "if" ? tagged(value, at: place) : renamed(value, at: place)
            }
        }
    }

    private struct Place {
        let host: String
        let origin: OriginAddress
        let prefix: String
        let basePath: String
    }

    private static let rewritten: Set<String> = ["origin", "referer", "destination", "if"]

    /// The URL under the origin's name; unchanged if it names another host, or a path of the gateway outside the prefix.
    private static func renamed(_ url: String, at place: Place) -> String {
        for scheme in ["http://", "https://"] where url.lowercased().hasPrefix(scheme + place.host.lowercased()) {
            let rest = url.utf8.dropFirst(scheme.utf8.count + place.host.utf8.count)
            if rest.isEmpty { return place.origin.url }
            guard rest.starts(with: place.prefix.utf8) else { continue }
            let path = rest.dropFirst(place.prefix.utf8.count)
            guard path.isEmpty || [UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#")].contains(path.first) else { continue }
            return place.origin.url + place.basePath + String(decoding: path, as: UTF8.self)
        }
        return url
    }

    /// A value of `If`, whose tagged lists begin with a URL in angle brackets (RFC 4918 §10.4).
    private static func tagged(_ value: String, at place: Place) -> String {
        var text = ""
        var rest = value[...]
        while let open = rest.firstIndex(of: "<"), let close = rest[open...].firstIndex(of: ">") {
            let url = rest[rest.index(after: open)..<close]
            text += rest[...open] + renamed(String(url), at: place) + ">"
            rest = rest[rest.index(after: close)...]
        }
        return text + rest
    }

    /// The fields that tell an upstream about its client: `Forwarded` and the `X-Forwarded` family (RFC 7239).
    /// - Parameter address: The client's address, nil if it is unknown.
    package static func forwarded(for address: String?, host: String, scheme: String) -> HTTPFields {
        let node = address.map { $0.contains(":") ? "\"[\($0)]\"" : $0 }
        let quoted = host.utf8.allSatisfy(FieldByte.isTokenByte) ? host : "\"\(host)\""
        let members = [node.map { "for=\($0)" }, "host=\(quoted)", "proto=\(scheme)"].compactMap { $0 }
        var fields = HTTPFields()
        for (name, value) in [
            ("Forwarded", members.joined(separator: ";")), ("X-Forwarded-For", address), ("X-Forwarded-Host", host),
            ("X-Forwarded-Proto", scheme),
        ] {
            if let name = HTTPField.Name(name), let value { fields.append(HTTPField(name: name, value: value)) }
        }
        return fields
    }
}
