// A gateway as its clients see it, and the origin that it stands in for (docs/guide/clients.md#gateways).

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
