// Reasons against reuse (RFC 9111 §4; docs/caching.md).

/// The reason why no stored response is used.
package enum NoReuse: String, CaseIterable, Sendable, Codable {
    case uriMiss = "uri-miss"
    case varyMiss = "vary-miss"
    /// The stored part lacks some of the requested bytes.
    case partial
    case method
    /// The strategy does not use the store.
    case bypass
    case requestBody = "request-body"
    /// The framework may treat the request as another method.
    case methodOverride = "method-override"
    case requestNoStore = "request-no-store"
    /// `If-Match` or `If-Unmodified-Since`, which only the origin can evaluate.
    case originCondition = "origin-condition"
    /// `no-cache`, `max-age` or `min-fresh` excludes the stored response, and the request may not be forwarded or the response is a part.
    case requestDirective = "request-directive"
    /// Stale, and the request may not be forwarded or the stored response is a part.
    case stale
    /// Stored longer ago than its category may be served offline.
    case offlineWindow = "offline-window"

    /// The reason for forwarding, as a `fwd` value of RFC 9211 §2.2.
    package var forward: CacheStatus.Forward {
        switch self {
        case .uriMiss: .uriMiss
        case .varyMiss: .varyMiss
        case .partial: .partial
        case .method: .method
        case .bypass, .requestBody, .methodOverride: .bypass
        case .requestNoStore, .originCondition, .requestDirective: .request
        case .stale, .offlineWindow: .stale
        }
    }
}
