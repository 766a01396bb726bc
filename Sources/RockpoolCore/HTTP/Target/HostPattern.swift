// A list entry that matches one host, or every name below one, at any port or one port (docs/reference/behaviour.md#https
// `proxy.intercept`).

/// `api.example.com`, `*.example.com` or `[::1]`, each with an optional `:port`.
package struct HostPattern: Hashable, Sendable {
    private let host: String
    /// `*.`: matches names below `host` at any depth, but not `host` itself.
    private let isBelow: Bool
    /// Nil matches any port.
    private let port: Int?

    /// Nil if `text` is not a valid entry.
    package init?(_ text: String) {
        isBelow = text.hasPrefix("*.")
        let rest = isBelow ? String(text.dropFirst(2)) : text
        guard let authority = try? Authority.parse(rest[...]), !isBelow || IPAddress(authority.host) == nil else { return nil }
        host = authority.host
        port = authority.port
    }

    /// True if the entry matches this host (lower case, an IPv6 address without brackets) at this port.
    package func matches(host name: String, port number: Int) -> Bool {
        guard port == nil || port == number else { return false }
        return isBelow ? name.hasSuffix("." + host) : name == host
    }
}
