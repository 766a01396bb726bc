// One line of `upstreams[].routes`: which requests, and what holds for them (contract §2).

/// A rule for some requests of an upstream; the first that matches wins.
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
    /// Which queries mean the same, in the words of No-Vary-Search; overrules what the origin says.
    package var searchVariance: SearchVariance?

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
