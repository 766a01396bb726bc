// The policy of a class of resources: how long it is kept, what it may take of the disk (design §1, features G1).

/// A category of resources, built in or the user's own.
package struct Category: Hashable, Sendable, Codable {
    package var name: String
    /// Freshness given to a response without any of its own, on routes that name this category.
    package var ttl: TimeSpan
    /// How long past storing (or the last validation) an entry may be served while its upstream is unreachable.
    package var offlineWindow: TimeSpan
    /// Percent of `cache_limit` that others cannot take from it, 0…100.
    package var guaranteePercent: Int
    /// Percent of `cache_limit` it may take at most, 0…100.
    package var sharePercent: Int
    /// How much dearer its bytes are than those of weight 1; higher leaves later.
    package var weight: Int
    /// Larger bodies are not stored.
    package var maxObject: ByteCount?

    package init(
        name: String, ttl: TimeSpan = .zero, offlineWindow: TimeSpan = .forever, guaranteePercent: Int = 0,
        sharePercent: Int = 100, weight: Int = 1, maxObject: ByteCount? = nil
    ) {
        self.name = name
        self.ttl = ttl
        self.offlineWindow = offlineWindow
        self.guaranteePercent = guaranteePercent
        self.sharePercent = sharePercent
        self.weight = weight
        self.maxObject = maxObject
    }
}

extension Category {
    package static let critical = Category(name: "critical", guaranteePercent: 40, weight: 8)
    package static let important = Category(name: "important", ttl: .hours(1), offlineWindow: .days(30), guaranteePercent: 20, weight: 4)
    package static let assets = Category(
        name: "assets", ttl: .days(7), offlineWindow: .days(90), sharePercent: 70, weight: 1, maxObject: .mb(64))
    package static let ephemeral = Category(name: "ephemeral", offlineWindow: .hours(24), sharePercent: 5, weight: 1)
    /// The four that are always there, overridable by the configuration.
    package static let builtIn: [Category] = [.critical, .important, .assets, .ephemeral]
}
