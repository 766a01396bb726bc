// A gateway as its clients see it, and the origin that it stands in for (docs/guide/clients.md#gateways).

/// Translates URLs of the origin to the gateway, and back.
package struct GatewayAddress: Hashable, Sendable {
    package let origin: OriginAddress
    /// `scheme://authority` that the client used for the gateway.
    package let base: String

    /// Nil if the client addressed the gateway by the origin's own name: then nothing has to be translated.
    package init?(origin: OriginAddress, base: String) {
        guard base != origin.url else { return nil }
        (self.origin, self.base) = (origin, base)
    }

    package var isSecure: Bool { base.hasPrefix("https://") }
    package var authority: Substring { base[(base.firstRange(of: "://")?.upperBound ?? base.startIndex)...] }

    /// Returns the URL at the gateway for a reference that names the origin; nil for any other reference, also a relative one.
    ///
    /// A URL of the origin with the scheme `http` and the default port counts as the origin's own if the origin is `https` at its default
    /// port: servers behind a TLS terminator write it.
    package func translated(_ reference: String) -> String? {
        guard let start = reference.firstRange(of: "//")?.upperBound else { return nil }
        let scheme = reference[..<reference.index(start, offsetBy: -2)].lowercased()
        let rest = reference[start...]
        let named = rest.prefix { !"/?#".contains($0) }
        guard isOrigins(named, scheme: scheme) else { return nil }
        let path = rest.dropFirst(named.count)
        return (scheme.isEmpty ? "//" + authority : base) + path
    }

    private func isOrigins(_ authority: Substring, scheme: String) -> Bool {
        let scheme = scheme.isEmpty ? origin.scheme.rawValue : String(scheme.dropLast())
        guard let known = OriginAddress.Scheme(rawValue: scheme),
            let address = HostAndPort(String(authority), defaultPort: known.defaultPort), address.host == origin.host
        else { return false }
        if known == origin.scheme { return address.port == origin.port }
        return known == .http && address.port == 80 && origin.port == OriginAddress.Scheme.https.defaultPort
    }
}
