// The result of routing: the configuration that applies to one request (docs/architecture.md#journeys, step `route`).

/// The configuration that later steps need for one request.
package struct RoutePlan: Hashable, Sendable {
    /// The parts of the configuration, which each step of a request would copy otherwise.
    private struct Parts: Hashable, Sendable {
        var upstream: Upstream?
        var route: Route?
        var entity: EntityMatch?
        var category: CacheCategory?
    }

    private var parts: Boxed<Parts>

    /// The declared upstream, or an undeclared host with queueable writes; nil for any other host.
    package var upstream: Upstream? {
        _read { yield parts.value.upstream }
        _modify { yield &parts.value.upstream }
    }
    /// The first route that matched.
    package var route: Route? {
        _read { yield parts.value.route }
        _modify { yield &parts.value.route }
    }
    /// The entity of the request; nil for a read without a declared resource.
    package var entity: EntityMatch? {
        _read { yield parts.value.entity }
        _modify { yield &parts.value.entity }
    }
    /// The category named by a route (or by the defaults, for undeclared hosts); nil is `auto`, chosen by the response's type.
    package var category: CacheCategory? {
        _read { yield parts.value.category }
        _modify { yield &parts.value.category }
    }
    /// The strategy for a read; `cache-first` unless a route sets another.
    package var strategy: Strategy
    /// The rules for stored responses.
    package var policy: CachePolicy
    /// True if the request may be queued in the outbox while its upstream is unreachable.
    package var queueable: Bool
    /// The reason why this request is not queued although its route permits it; nil if there is none.
    package var obstacleToQueueing: String?
    /// The route's rule for storing.
    package var store: Route.Store
    /// The route's rule for equivalent queries.
    package var searchVariance: SearchVariance? { route?.searchVariance }
    /// The lifetime of responses that state none: of the route, else of the named category; nil: none.
    package var assignedTTL: TimeSpan? { route?.ttl?.fallback ?? category?.ttl }
    /// How far a response decides in which partition it is kept, and whether at all.
    package var keeping = Keeping.byResponse
    /// The condition under which an answer of 2xx to a write is a success: the route's, else the resource's.
    package var success: SuccessRule? { route?.success ?? entity?.resource?.success }
    /// True for a write: the method is not safe (RFC 9110 §9.2.1), and no route declares it a search cached by its body.
    package var isWrite: Bool
    /// True for a write of a telemetry route: it waits in a queue of its own, and has no effect on anything that is read.
    package var isTelemetry: Bool { isWrite && route?.kind == .telemetry && upstream != nil }

    /// The plan of an undeclared host under default settings, unless arguments override it.
    package init(
        upstream: Upstream? = nil, route: Route? = nil, entity: EntityMatch? = nil, category: CacheCategory? = nil,
        strategy: Strategy = .cacheFirst, policy: CachePolicy = .standard, queueable: Bool = false, store: Route.Store = .standard,
        isWrite: Bool = false
    ) {
        parts = Boxed(Parts(upstream: upstream, route: route, entity: entity, category: category))
        self.strategy = strategy
        self.policy = policy
        self.queueable = queueable
        self.store = store
        self.isWrite = isWrite
    }
}
