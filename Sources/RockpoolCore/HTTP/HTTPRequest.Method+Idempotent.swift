// The idempotent methods (RFC 9110 §9.2.2; the IANA registry of HTTP methods).
package import HTTPTypes

extension HTTPRequest.Method {
    /// RFC 9110 §9.2.2: several identical requests have the effect of one. Of WebDAV's methods, MKCOL, COPY and MOVE are idempotent too: the
    /// answer to a repeated one may differ (405, 404), its effect does not.
    package var isIdempotent: Bool {
        switch self {
        case .put, .delete, .get, .head, .options, .trace: true
        default: ["MKCOL", "COPY", "MOVE"].contains(rawValue)
        }
    }
}
