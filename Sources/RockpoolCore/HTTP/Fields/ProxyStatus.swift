// This proxy's member of the `Proxy-Status` field, which describes the failure of an upstream (RFC 9209,
// docs/reference/headers.md#proxy-status).

/// One member of `Proxy-Status`, on generated replies and on stored responses served in place of an upstream.
package struct ProxyStatus: Hashable, Sendable {
    /// The name of this proxy in the list, a token.
    package var proxy: String
    package var error: ProxyError
    /// `host:port` of the upstream.
    package var nextHop: String?

    package init(proxy: String = "rockpool", error: ProxyError, nextHop: String? = nil) {
        self.proxy = proxy
        self.error = error
        self.nextHop = nextHop
    }

    /// The member in field syntax: `rockpool; error=connection_refused; next-hop="api.example.com:443"`.
    package var fieldValue: String {
        var text = "\(proxy); error=\(error.rawValue)"
        if let nextHop { text += "; next-hop=\(StructuredText.string(nextHop))" }
        return text
    }
}
