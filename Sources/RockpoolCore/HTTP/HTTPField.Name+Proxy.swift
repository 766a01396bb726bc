// Field names a proxy needs that HTTPTypes does not have.
package import HTTPTypes

extension HTTPField.Name {
    /// Host as it stands on the wire of HTTP/1; HTTPTypes hides it behind `:authority`.
    package static let hostField = HTTPField.Name.registered("Host")
    /// RFC 8586.
    package static let cdnLoop = HTTPField.Name.registered("CDN-Loop")
    /// draft-ietf-httpapi-idempotency-key-header.
    package static let idempotencyKey = HTTPField.Name.registered("Idempotency-Key")
    /// Never registered, still sent by old clients of proxies (RFC 9110 §7.6.1).
    package static let proxyConnection = HTTPField.Name.registered("Proxy-Connection")
    /// RFC 9112 §C.2.2.
    package static let keepAlive = HTTPField.Name.registered("Keep-Alive")
    /// RFC 7540 §3.2.1; obsolete with h2c.
    package static let http2Settings = HTTPField.Name.registered("HTTP2-Settings")

    /// The names above are tokens; the fallback is never reached and only spares a trap.
    private static func registered(_ name: String) -> HTTPField.Name { HTTPField.Name(name) ?? .connection }
}
