// The caching policy of a class of resources: lifetimes and disk shares (docs/architecture.md#vocabulary, docs/caching.md#categories).

/// A category of resources, built in or defined by the user.
package struct CacheCategory: Hashable, Sendable, Codable {
    package var name: String
    /// The lifetime of responses without explicit freshness, on routes that name this category.
    package var ttl: TimeSpan
    /// The time after storing (or the last validation) for which an entry may be served while its upstream is unreachable.
    package var offlineWindow: TimeSpan
    /// Percent of `cache_limit` that other categories cannot take from it, 0…100.
    package var guaranteePercent: Int
    /// Percent of `cache_limit` it may use at most, 0…100.
    package var sharePercent: Int
    /// The value of its bytes relative to weight 1; a higher weight is evicted later.
    package var weight: Int
    /// Larger bodies are not stored.
    package var maxObject: ByteCount?
    /// The number of requests for a URL after which its response is stored, 1…100; 1 stores it at once.
    package var minUses: Int

    package init(
        name: String, ttl: TimeSpan = .zero, offlineWindow: TimeSpan = .forever, guaranteePercent: Int = 0,
        sharePercent: Int = 100, weight: Int = 1, maxObject: ByteCount? = nil, minUses: Int = 1
    ) {
        self.name = name
        self.ttl = ttl
        self.offlineWindow = offlineWindow
        self.guaranteePercent = guaranteePercent
        self.sharePercent = sharePercent
        self.weight = weight
        self.maxObject = maxObject
        self.minUses = minUses
    }

    /// True if only its share and the limit of the cache make it smaller: its entries are kept for offline use.
    package var isKept: Bool { name == Self.critical.name || offlineWindow == .forever }
}

extension CacheCategory {
    package static let critical = CacheCategory(name: "critical", guaranteePercent: 40, weight: 8)
    package static let important = CacheCategory(
        name: "important", ttl: .hours(1), offlineWindow: .days(30), guaranteePercent: 20, weight: 4)
    package static let assets = CacheCategory(
        name: "assets", ttl: .days(7), offlineWindow: .days(90), sharePercent: 70, weight: 1, maxObject: .mb(64))
    package static let ephemeral = CacheCategory(name: "ephemeral", offlineWindow: .hours(24), sharePercent: 5, weight: 1)
    /// The four built-in categories, overridable by the configuration.
    package static let builtIn: [CacheCategory] = [.critical, .important, .assets, .ephemeral]
}
