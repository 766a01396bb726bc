// The idempotent methods (RFC 9110 §9.2.2).
package import HTTPTypes

extension HTTPRequest.Method {
    /// RFC 9110 §9.2.2: several identical requests have the effect of one.
    package var isIdempotent: Bool {
        switch self {
        case .put, .delete, .get, .head, .options, .trace: true
        default: false
        }
    }
}
