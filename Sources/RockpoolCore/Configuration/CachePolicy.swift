// The cache policies of an upstream (docs/caching.md#policies).

/// The rules for stored responses of an upstream (docs/caching.md#policies).
package enum CachePolicy: String, CaseIterable, Sendable, Codable {
    /// Strict RFC 9111.
    case standard
    /// Strict while online; while the upstream is unreachable, stale and `no-cache` responses are served within the offline window.
    case offlineFirst = "offline-first"
}
