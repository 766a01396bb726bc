// What the configuration says about one request: the outcome of routing (design §2, step `route`).

/// Everything later steps ask of the configuration about one request.
package struct RoutePlan: Hashable, Sendable {
    /// The declared upstream, or one that writes to an undeclared host may wait for; nil for any other host.
    package var upstream: Upstream?
    /// The first route that matched.
    package var route: Route?
    /// What the request is about; nil when nothing is declared about a read.
    package var entity: EntityMatch?
    /// The category a route (or the defaults, for undeclared hosts) names; nil is `auto`, told by the response's type.
    package var category: Category?
    /// How a read is answered; `cache-first` where no route says otherwise.
    package var strategy: Strategy
    /// Which rules hold for stored responses.
    package var policy: CachePolicy
    /// Whether it may be taken into the outbox while its upstream cannot be reached.
    package var queueable: Bool
    /// What a route says about storing.
    package var store: Route.Store
    /// What a route says about queries that mean the same.
    package var searchVariance: SearchVariance? { route?.searchVariance }
    /// Whether it changes something: its method is not safe (RFC 9110 §9.2.1), and no route says it is a search cached by its body.
    package var isWrite: Bool

    /// The plan of an undeclared host under default settings, where nothing else is said.
    package init(
        upstream: Upstream? = nil, route: Route? = nil, entity: EntityMatch? = nil, category: Category? = nil,
        strategy: Strategy = .cacheFirst, policy: CachePolicy = .standard, queueable: Bool = false, store: Route.Store = .standard,
        isWrite: Bool = false
    ) {
        self.upstream = upstream
        self.route = route
        self.entity = entity
        self.category = category
        self.strategy = strategy
        self.policy = policy
        self.queueable = queueable
        self.store = store
        self.isWrite = isWrite
    }
}
