// How a read is answered, by Workbox's names (design §1).

/// How a read is answered.
package enum Strategy: String, CaseIterable, Sendable, Codable {
    /// A fresh stored response, else the upstream (validated when something is stored). The default.
    case cacheFirst = "cache-first"
    /// The upstream, and the stored response only when it cannot answer.
    case networkFirst = "network-first"
    /// The stored response at once, however stale within its window; refreshed behind.
    case staleWhileRevalidate = "stale-while-revalidate"
    /// The stored response or 504; nothing is sent.
    case cacheOnly = "cache-only"
    /// The upstream only; nothing is stored.
    case networkOnly = "network-only"
}

/// Which rules hold for stored responses of an upstream (design §5).
package enum CachePolicy: String, CaseIterable, Sendable, Codable {
    /// RFC 9111 to the letter.
    case standard
    /// The same while online; past freshness and `no-cache` within the offline window while the upstream is unreachable.
    case offlineFirst = "offline-first"
}
