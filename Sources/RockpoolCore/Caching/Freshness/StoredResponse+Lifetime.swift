// What the lifetimes of a route make of a stored response (docs/caching.md#lifetimes-by-route).

extension CacheControl {
    /// These directives without those that a route overrides: the ones that demand validation.
    var overridden: CacheControl {
        var directives = self
        if directives.noCache == .all { directives.noCache = .absent }
        (directives.mustRevalidate, directives.proxyRevalidate, directives.sMaxAge) = (false, false, nil)
        return directives
    }
}

extension StoredResponse {
    /// Takes the rule of the route that answers for it now. What is shared only because it is validated for each client
    /// (RFC 9111 §3.5) stays so.
    package mutating func adopt(_ rule: LifetimeRule?) {
        var rule = rule
        if owner != nil { rule?.overrides = false }
        if rule != lifetimeRule { lifetimeRule = rule }
    }
}

extension CacheStatus {
    /// The status of a fresh stored response; it says when a route has set the lifetime.
    package static func hit(_ freshness: Freshness) -> CacheStatus {
        CacheStatus(hit: true, ttl: freshness.remaining.seconds, detail: freshness.source == .route ? "route-ttl" : nil)
    }
}
