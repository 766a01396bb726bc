// One line of `upstreams[].routes`: a request pattern and its settings (docs/reference/configuration.md#routes).

/// A rule for some requests of an upstream; the first match applies.
package struct Route: Hashable, Sendable {
    package enum Queue: String, CaseIterable, Sendable, Codable { case allowed, never, always }
    package enum Store: String, CaseIterable, Sendable, Codable { case standard, always, never }
    package enum Cache: String, CaseIterable, Sendable, Codable { case standard, body }

    /// `METHOD pattern` or `pattern`; `*` is one segment, `**` any number.
    package var match: String
    package var category: String?
    package var strategy: Strategy?
    package var queue: Queue
    package var store: Store
    package var cache: Cache
    /// The equivalence of queries in No-Vary-Search syntax; overrides the origin's field.
    package var searchVariance: SearchVariance?
    /// The condition under which an answer to a write is a success; nil: the resource's, else every 2xx.
    package var success: SuccessRule?
    /// True if a success of this request ends its client's session (docs/outbox.md#forgotten).
    package var logout = false

    package init(
        match: String, category: String? = nil, strategy: Strategy? = nil, queue: Queue = .allowed,
        store: Store = .standard, cache: Cache = .standard, searchVariance: SearchVariance? = nil
    ) {
        self.match = match
        self.category = category
        self.strategy = strategy
        self.queue = queue
        self.store = store
        self.cache = cache
        self.searchVariance = searchVariance
    }
}
