// What a reply says of an upstream that failed: our member of the `Proxy-Status` field (RFC 9209, contract §3).

/// One member of `Proxy-Status`, on replies we generate and on stored ones served in an upstream's place.
package struct ProxyStatus: Hashable, Sendable {
    /// The name of this proxy in the list, a token.
    package var proxy: String
    package var error: ProxyError
    /// `host:port` of the upstream.
    package var nextHop: String?
    /// A sentence for people; never a credential, never a path of this machine.
    package var detail: String?

    package init(proxy: String = "rockpool", error: ProxyError, nextHop: String? = nil, detail: String? = nil) {
        self.proxy = proxy
        self.error = error
        self.nextHop = nextHop
        self.detail = detail
    }

    /// The member as the field carries it: `rockpool; error=connection_refused; next-hop="api.example.com:443"`.
    package var fieldValue: String {
        var text = "\(proxy); error=\(error.rawValue)"
        if let nextHop { text += "; next-hop=\(StructuredText.string(nextHop))" }
        if let detail { text += "; details=\(StructuredText.string(detail))" }
        return text
    }
}
