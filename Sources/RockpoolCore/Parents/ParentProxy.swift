// Requests a tunnel from a parent proxy by CONNECT (RFC 9110 §9.3.6) or SOCKS 5 (RFC 1928), at the byte level.

/// A parent proxy's address and protocol, in the syntax of `upstreams[].via`.
package struct ParentProxy: Hashable, Sendable {
    package enum Kind: String, Sendable { case http, https, socks5, socks5h }

    package let kind: Kind
    package let address: HostAndPort

    /// Nil unless `text` is `http://`, `https://`, `socks5://` or `socks5h://` with host and port.
    package init?(_ text: String) {
        guard let separator = text.firstRange(of: "://"), let kind = Kind(rawValue: String(text[..<separator.lowerBound])),
            let address = HostAndPort(String(text[separator.upperBound...])), address.port > 0
        else { return nil }
        self.kind = kind
        self.address = address
    }
}
