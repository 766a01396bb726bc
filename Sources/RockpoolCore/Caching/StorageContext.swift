// What the decision to store needs beside the two heads.

/// The circumstances of one exchange, as far as storing depends on them.
package struct StorageContext: Hashable, Sendable {
    /// Nil: the request carries no credentials. Empty: it may, but the upstream's `identity: single` switches partitions off.
    package var identity: String?
    package var policy: CachePolicy
    package var strategy: Strategy
    /// What the route says of storing.
    package var rule: Route.Store
    /// Whether the request has a body.
    package var hasBody: Bool
    /// Whether the route caches by the request's body (`cache: body`), which lets other methods than GET be stored.
    package var cachesByBody: Bool

    package init(
        identity: String? = nil, policy: CachePolicy = .standard, strategy: Strategy = .cacheFirst, rule: Route.Store = .standard,
        hasBody: Bool = false, cachesByBody: Bool = false
    ) {
        self.identity = identity
        self.policy = policy
        self.strategy = strategy
        self.rule = rule
        self.hasBody = hasBody
        self.cachesByBody = cachesByBody
    }
}
