// Field names needed by a proxy that HTTPTypes does not define.
package import HTTPTypes

extension HTTPField.Name {
    /// The Host field of HTTP/1, which HTTPTypes replaces by `:authority`.
    package static let hostField = HTTPField.Name.registered("Host")
    /// RFC 8586.
    package static let cdnLoop = HTTPField.Name.registered("CDN-Loop")
    /// draft-ietf-httpapi-idempotency-key-header.
    package static let idempotencyKey = HTTPField.Name.registered("Idempotency-Key")
    /// Never registered, but still sent by old clients of proxies (RFC 9110 §7.6.1).
    package static let proxyConnection = HTTPField.Name.registered("Proxy-Connection")
    /// RFC 9112 §C.2.2.
    package static let keepAlive = HTTPField.Name.registered("Keep-Alive")
    /// RFC 7540 §3.2.1; obsolete with h2c.
    package static let http2Settings = HTTPField.Name.registered("HTTP2-Settings")

    /// The names above are valid tokens; the fallback is never used and only avoids a forced unwrap.
    private static func registered(_ name: String) -> HTTPField.Name { HTTPField.Name(name) ?? .connection }
}
