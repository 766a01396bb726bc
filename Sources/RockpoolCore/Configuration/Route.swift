// One line of `upstreams[].routes`: a request pattern and its settings (docs/reference/configuration.md#routes).

/// The time limits of a route.
package struct RouteTimeouts: Hashable, Sendable {
    /// From sending the request to the first byte of the response; nil: the upstream's.
    package var firstByte: TimeSpan?
    /// The longest pause within a body.
    package var idle: TimeSpan

    package init(firstByte: TimeSpan? = nil, idle: TimeSpan = .forever) { (self.firstByte, self.idle) = (firstByte, idle) }
}

/// A rule for some requests of an upstream; the first match applies.
package struct Route: Hashable, Sendable {
    package enum Queue: String, CaseIterable, Sendable, Codable { case allowed, never, always }
    package enum Store: String, CaseIterable, Sendable, Codable { case standard, always, never }
    package enum Cache: String, CaseIterable, Sendable, Codable { case standard, body }
    /// The protocol that its requests speak.
    package enum Kind: String, CaseIterable, Sendable, Codable { case standard, graphql, s3 }

    /// `METHOD pattern` or `pattern`; `*` is one segment, `**` any number.
    package var match: String
    package var category: String?
    package var strategy: Strategy?
    package var queue: Queue
    package var store: Store
    package var cache: Cache
    package var kind: Kind
    /// Of a GraphQL route: the variable that names what a mutation changes. Mutations of one value keep their order.
    package var lane: String?
    /// The form of the reply to a queued mutation of a GraphQL route, or to a queued write of a file.
    package var offlineResponse = Resource.OfflineResponse.accepted
    /// Time limits of its own, for long polls and streams.
    package var timeouts: RouteTimeouts?
    /// The equivalence of queries in No-Vary-Search syntax; overrides the origin's field.
    package var searchVariance: SearchVariance?
    /// The condition under which an answer to a write is a success; nil: the resource's, else every 2xx.
    package var success: SuccessRule?
    /// True if a success of this request ends its client's session (docs/outbox.md#forgotten).
    package var logout = false

    package init(
        match: String, category: String? = nil, strategy: Strategy? = nil, queue: Queue = .allowed,
        store: Store = .standard, cache: Cache = .standard, kind: Kind = .standard, lane: String? = nil,
        searchVariance: SearchVariance? = nil
    ) {
        self.match = match
        self.category = category
        self.strategy = strategy
        self.queue = queue
        self.store = store
        self.cache = cache
        self.kind = kind
        self.lane = lane
        self.searchVariance = searchVariance
    }

    /// True if the body of a request decides whether it is a read, and is part of the cache key.
    package var isReadByBody: Bool { cache == .body || kind == .graphql }
}
