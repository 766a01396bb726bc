// Scheme, host and port: the origin of RFC 6454 and RFC 9110 §4.3.1, which identifies an upstream.

/// An origin server's address. The host is lower case; an IPv6 address is without brackets.
package struct OriginAddress: Hashable, Sendable, Codable {
    package enum Scheme: String, Sendable, Codable { case http, https }

    package var scheme: Scheme
    package var host: String
    /// 1…65535.
    package var port: Int

    package init(scheme: Scheme, host: String, port: Int? = nil) {
        self.scheme = scheme
        self.host = Authority.withoutRootDot(host.lowercased())
        self.port = port ?? scheme.defaultPort
    }

    /// `host`, or `host:port` if the port is not the scheme's default: the value of `Host` (RFC 9110 §7.2).
    package var authority: String { port == scheme.defaultPort ? bracketedHost : hostAndPort }
    /// `host:port`, always with the port: the form used by CONNECT and by `next-hop` of Proxy-Status.
    package var hostAndPort: String { bracketedHost + ":" + String(port) }
    /// `scheme://authority`.
    package var url: String { scheme.rawValue + "://" + authority }

    /// The host in URI syntax: an IPv6 address in brackets.
    package var bracketedHost: String { host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host }

    /// True if the host's text denotes this machine, without name resolution: the loopback names (RFC 6761 §6.3) and addresses.
    package static func isLoopback(_ host: String) -> Bool {
        if let address = IPAddress(host) { return address.meansLoopback || address.isUnspecified }
        return host == "localhost" || host.hasSuffix(".localhost")
    }
}

/// An origin, and the path of an API below it.
package struct OriginBase: Hashable, Sendable {
    package var origin: OriginAddress
    /// Empty, or whole segments without a slash at the end.
    package var path: String

    package init(origin: OriginAddress, path: String) { (self.origin, self.path) = (origin, path) }
}

extension OriginAddress.Scheme {
    package var defaultPort: Int { self == .https ? 443 : 80 }
}
