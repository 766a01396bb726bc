// The inputs of the storing decision other than the two heads.

/// The circumstances of one exchange that affect storing.
package struct StorageContext: Hashable, Sendable {
    /// Nil: the request carries no credentials. Empty: it may carry some, but the upstream's `identity: single` disables partitions.
    package var identity: String?
    package var policy: CachePolicy
    package var strategy: Strategy
    /// The route's rule for storing.
    package var rule: Route.Store
    /// True if the request has a body.
    package var hasBody: Bool
    /// True if the route caches by the request's body (`cache: body`), which permits storing methods other than GET.
    package var cachesByBody: Bool
    /// True if the route declares its requests to be reads by their body (`cache: body`), also for a request without one.
    package var isReadByBody: Bool
    /// True if the route or its category gives a response without freshness of its own a `ttl`.
    package var assignsFreshness: Bool
    /// True if the route's `ttl` counts more than what the response says: `no-cache` without a validator is then no reason against storing.
    package var overridesFreshness: Bool
    package var keeping: Keeping

    package init(
        identity: String? = nil, policy: CachePolicy = .standard, strategy: Strategy = .cacheFirst, rule: Route.Store = .standard,
        hasBody: Bool = false, cachesByBody: Bool = false, isReadByBody: Bool = false, assignsFreshness: Bool = false,
        overridesFreshness: Bool = false, keeping: Keeping = .byResponse
    ) {
        self.identity = identity
        self.policy = policy
        self.strategy = strategy
        self.rule = rule
        self.hasBody = hasBody
        self.cachesByBody = cachesByBody
        self.isReadByBody = isReadByBody
        self.assignsFreshness = assignsFreshness
        self.overridesFreshness = overridesFreshness
        self.keeping = keeping
    }
}
