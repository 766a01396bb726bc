// Maps a request to its plan: the upstream by origin, then the first matching route (docs/reference/configuration.md#routes).
import HTTPTypes

/// The compiled routes of a configuration. A request's path is split once and compared with each pattern.
package struct RouteTable: Sendable {
    private let byOrigin: [OriginAddress: CompiledUpstream]
    private let byName: [String: Upstream]
    private let adoptedByOrigin: [OriginAddress: Upstream]
    private let categories: [String: CacheCategory]
    private let defaults: DefaultSettings
    private let admitsRemoteClients: Bool
    /// The token endpoints of all upstreams, on any origin, as URLs without a query.
    private let tokenEndpoints: Set<String>

    /// Compiles every pattern and template. Of two upstreams with the same origin the first is used.
    ///
    /// - Parameter adopted: Undeclared hosts with queued writes (`defaults.queue_writes`).
    package init(_ configuration: Configuration, adopting adopted: [OriginAddress] = []) {
        defaults = configuration.defaults
        admitsRemoteClients = !configuration.proxy.allow.isEmpty
        let (policy, isOpen) = (defaults.policy, !admitsRemoteClients)
        self.adopted = adopted.map { Upstream(adopting: $0, policy: policy, allowsLoopback: isOpen) }
        upstreams = configuration.upstreams + self.adopted + Upstream.receivers(of: configuration)
        byOrigin = Dictionary(configuration.upstreams.map { ($0.origin, CompiledUpstream($0)) }) { first, _ in first }
        adoptedByOrigin = Dictionary(self.adopted.map { ($0.origin, $0) }) { first, _ in first }
        byName = Dictionary(upstreams.map { ($0.name, $0) }) { first, _ in first }
        categories = Dictionary(configuration.categories.map { ($0.name, $0) }) { _, last in last }
        tokenEndpoints = Set(configuration.upstreams.compactMap { $0.refresh?.head(origin: $0.origin)?.urlWithoutQuery })
    }

    /// Every declared and adopted upstream, and the receivers of messages.
    package let upstreams: [Upstream]
    /// Undeclared hosts with queued writes.
    package let adopted: [Upstream]

    /// The declared or adopted upstream of that name.
    package func upstream(named name: String) -> Upstream? { byName[name] }

    /// The declared upstream at that origin.
    package func upstream(for origin: OriginAddress) -> Upstream? { byOrigin[origin]?.upstream }

    /// The configuration that applies to a request.
    /// - Parameter isWrite: True if the request's body shows that it is a write, although its route treats it as a read.
    package func plan(for request: RequestHead, isWrite: Bool = false) -> RoutePlan {
        let method = request.method.rawValue
        let pathEnd = request.target.utf8.firstIndex(of: UInt8(ascii: "?")) ?? request.target.endIndex
        let path = request.target[..<pathEnd].pathSegments
        var holdsTokens = !tokenEndpoints.isEmpty && tokenEndpoints.contains(request.urlWithoutQuery)
        guard let declared = byOrigin[request.origin] else {
            return undeclaredPlan(request, path: path, holdsTokens: holdsTokens)
        }
        if let refresh = declared.upstream.refresh { holdsTokens = holdsTokens || refresh.concerns(target: request.target) }
        let route = declared.route(method: method, path: path)
        let isLogout = route?.logout == true
        let isWrite = !request.method.isSafe && (isWrite || route?.isReadByBody != true)
        return RoutePlan(
            upstream: declared.upstream, route: route, entity: declared.entity(method: method, path: path, isWrite: isWrite),
            category: route?.category.flatMap { categories[$0] }, strategy: isLogout ? .networkOnly : route?.strategy ?? .cacheFirst,
            policy: declared.upstream.policy,
            queueable: isWrite && Self.isQueueable(request, route: route, methods: declared.upstream.queue.methods)
                && !holdsTokens,
            store: holdsTokens || isLogout ? .never : route?.store ?? .standard, isWrite: isWrite)
    }

    private func undeclaredPlan(_ request: RequestHead, path: [Substring], holdsTokens: Bool) -> RoutePlan {
        let (origin, method) = (request.origin, request.method)
        let isWrite = !method.isSafe
        let queueable =
            isWrite && !holdsTokens && defaults.queueWrites
            && Self.isQueueable(request, route: nil, methods: QueueSettings().methods)
        let implied = queueable ? Upstream(adopting: origin, policy: defaults.policy, allowsLoopback: !admitsRemoteClients) : nil
        return RoutePlan(
            upstream: adoptedByOrigin[origin] ?? implied,
            entity: isWrite ? .guessed(method: method.rawValue, segments: path.withoutTrailingSlash) : nil,
            category: categories[defaults.category], policy: defaults.policy, queueable: queueable,
            store: holdsTokens ? .never : .standard, isWrite: isWrite)
    }

    private static func isQueueable(_ request: RequestHead, route: Route?, methods: [String]) -> Bool {
        switch route?.queue {
        case .never: false
        case .always: true
        case .allowed, nil: methods.contains(request.method.rawValue) && (route?.kind == .graphql || QueueObstacle.of(request) == nil)
        }
    }
}

/// An upstream with its patterns and templates.
private struct CompiledUpstream: Sendable {
    let upstream: Upstream
    private let patterns: [PathPattern]
    private let resources: [ResourceTemplates]

    init(_ upstream: Upstream) {
        self.upstream = upstream
        patterns = upstream.routes.map { PathPattern($0.match) }
        resources = upstream.resources.map(ResourceTemplates.init)
    }

    func route(method: String, path: [Substring]) -> Route? {
        patterns.firstIndex { $0.matches(method: method, segments: path) }.map { upstream.routes[$0] }
    }

    /// Matches a whole path before an action, so that `/notes/{id}/comments` declared as a collection is one.
    func entity(method: String, path: [Substring], isWrite: Bool) -> EntityMatch? {
        let path = path.withoutTrailingSlash
        if let match = resources.firstMatch({ $0.match(path) }) { return match }
        guard isWrite else { return nil }
        return resources.firstMatch { $0.matchAction(path) } ?? .guessed(method: method, segments: path)
    }
}

extension Array {
    fileprivate func firstMatch<Match>(_ match: (Element) -> Match?) -> Match? { lazy.compactMap(match).first }
}
