// How long a stored response is served while its upstream cannot be reached (docs/caching.md#offline-use).
package import RockpoolCore
package import RockpoolStore

/// Answers for the entries of a list, by their URL and their times alone.
package struct OfflineUse {
    private let active: ActiveConfiguration
    package let now: Timestamp

    package init(active: ActiveConfiguration, now: Timestamp) { (self.active, self.now) = (active, now) }

    /// Returns the time until which the entry is served while the upstream is away; nil without an end. With the policy `standard` it is the
    /// end of its freshness: later the directives of the response decide, which `explain` reads.
    package func end(of listing: CacheListing) -> Timestamp? {
        guard let request = try? RequestHead(url: listing.url) else { return listing.freshUntil }
        let plan = active.routes.plan(for: request)
        guard plan.strategy != .networkOnly else { return .distantPast }
        guard plan.policy == .offlineFirst else { return listing.freshUntil }
        let window = (plan.category ?? active.category(named: listing.category))?.offlineWindow ?? .forever
        return window == .forever ? nil : max(listing.freshUntil, listing.storedAt + window)
    }
}
