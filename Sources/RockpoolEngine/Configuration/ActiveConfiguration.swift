// The configuration in force and the routes made of it; a reload and an adopted host replace both.
package import HTTPTypes
package import RockpoolCore
package import RockpoolStore
import Synchronization

/// The configuration in force.
package final class ActiveConfiguration: Sendable {
    private let settings: Mutex<(configuration: Configuration, routes: RouteTable, learned: [String: LearnedUpstream])>
    private let onChange: @Sendable ([Upstream]) -> Void
    /// The reason why no upstream is known and what to do, where no configuration was read; nil where one was.
    package let unread: String?

    /// - Parameter onChange: receives the known upstreams after every change, in the order of the changes.
    init(_ configuration: Configuration, unread: String? = nil, onChange: @escaping @Sendable ([Upstream]) -> Void) {
        settings = Mutex((configuration, RouteTable(configuration), [:]))
        (self.unread, self.onChange) = (unread, onChange)
    }

    package var configuration: Configuration { settings.withLock { $0.configuration } }
    package var routes: RouteTable { settings.withLock { $0.routes } }
    /// The retention periods of this configuration.
    package var retention: Retention { Retention(configuration.cleanup) }

    /// Takes new routes, categories and upstreams; listeners and directories stay as they are.
    func replace(by configuration: Configuration) {
        settings.withLock {
            $0.configuration = configuration
            $0.routes = RouteTable(configuration, adopting: $0.routes.adopted.map(\.origin), learned: $0.learned)
            onChange($0.routes.upstreams)
        }
    }

    /// Takes what traffic has shown of an upstream.
    func take(_ learned: LearnedUpstream, of upstream: String) {
        settings.withLock {
            $0.learned[upstream] = learned
            $0.routes = RouteTable($0.configuration, adopting: $0.routes.adopted.map(\.origin), learned: $0.learned)
        }
    }

    /// Changes which undeclared hosts are known because writes wait for them.
    ///
    /// - Returns: false, and nothing changes, when they would be more than `limit`.
    func changeAdopted(limit: Int = .max, _ change: (inout Set<OriginAddress>) -> Void) -> Bool {
        settings.withLock { settings in
            let known = Set(settings.routes.adopted.map(\.origin))
            var adopted = known
            change(&adopted)
            guard adopted != known else { return true }
            guard adopted.count <= limit else { return false }
            settings.routes = RouteTable(
                settings.configuration, adopting: adopted.sorted { $0.url < $1.url }, learned: settings.learned)
            // Within the lock: of two concurrent changes, the later one must also be the last to be published.
            onChange(settings.routes.upstreams)
            return true
        }
    }

    /// Returns the category with this name; nil if none has it.
    func category(named name: String) -> CacheCategory? { configuration.categories.first { $0.name == name } }

    /// Returns the category that rules a read: the route's, else that of the stored response; nil without either.
    func category(of plan: RoutePlan, for stored: StoredResponse?) -> CacheCategory? {
        plan.category ?? stored.flatMap { category(named: $0.category) }
    }

    /// Returns the time for which a stored response may be served in place of the upstream.
    func offlineWindow(of plan: RoutePlan, for stored: StoredResponse?) -> TimeSpan {
        category(of: plan, for: stored)?.offlineWindow ?? .forever
    }

    /// True if the values of a field are never shown: those of credentials, and of the fields that name an identity by an upstream's rule.
    package func isSecret(_ name: HTTPField.Name) -> Bool {
        SecretFields.contains(name)
            || configuration.upstreams.contains { upstream in
                if case .header(let rule) = upstream.identity { HTTPField.Name(rule) == name } else { false }
            }
    }
}

/// How long a stored response is served while its upstream cannot be reached (docs/caching.md#offline-use): for the entries of a list, by
/// their URL and their times alone.
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
