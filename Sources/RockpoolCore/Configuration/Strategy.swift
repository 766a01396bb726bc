// Strategies for serving a read, named as in Workbox (docs/architecture.md#vocabulary).

/// The strategy for serving a read.
package enum Strategy: String, CaseIterable, Sendable, Codable {
    /// A fresh stored response, else the upstream (revalidated if a response is stored). The default.
    case cacheFirst = "cache-first"
    /// The upstream; a stored response only if the upstream does not respond.
    case networkFirst = "network-first"
    /// The stored response immediately, however stale within its window, with revalidation in the background.
    case staleWhileRevalidate = "stale-while-revalidate"
    /// The stored response or 504; nothing is sent upstream.
    case cacheOnly = "cache-only"
    /// The upstream only; nothing is stored.
    case networkOnly = "network-only"
}
