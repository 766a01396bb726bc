// Maps a request to its plan: the upstream by origin, then the first matching route (docs/reference/configuration.md#routes).
import HTTPTypes

/// The compiled routes of a configuration. A request's path is split once and compared with each pattern.
package struct RouteTable: Sendable {
    /// The declared upstreams of each origin, those with the longest paths first; never empty.
    private let byOrigin: [OriginAddress: [CompiledUpstream]]
    private let byName: [String: Upstream]
    private let adoptedByOrigin: [OriginAddress: Upstream]
    private let categories: [String: CacheCategory]
    private let defaults: DefaultSettings
    private let admitsRemoteClients: Bool
    /// The paths of the token endpoints of all upstreams, as a lenient server may read them.
    private let tokenEndpoints: [OriginAddress: Set<String>]

    /// Compiles every pattern and template.
    ///
    /// - Parameters:
    ///   - adopted: Undeclared hosts with queued writes (`defaults.queue_writes`).
    ///   - learned: What traffic has shown of upstreams, by name.
    package init(_ configuration: Configuration, adopting adopted: [OriginAddress] = [], learned: [String: LearnedUpstream] = [:]) {
        let declared = configuration.upstreams.map { upstream in
            var upstream = upstream
            learned[upstream.name]?.describe(&upstream)
            return upstream
        }
        defaults = configuration.defaults
        admitsRemoteClients = !configuration.proxy.allow.isEmpty
        let (policy, isOpen) = (defaults.policy, !admitsRemoteClients)
        self.adopted = adopted.map { Upstream(adopting: $0, policy: policy, allowsLoopback: isOpen) }
        upstreams = declared + self.adopted + Upstream.receivers(of: configuration)
        byOrigin = Dictionary(grouping: declared.map { CompiledUpstream($0) }) { $0.upstream.origin }.mapValues { upstreams in
            upstreams.reversed().sorted { $0.base.count > $1.base.count }
        }
        adoptedByOrigin = Dictionary(self.adopted.map { ($0.origin, $0) }) { first, _ in first }
        byName = Dictionary(upstreams.map { ($0.name, $0) }) { first, _ in first }
        categories = Dictionary(configuration.categories.map { ($0.name, $0) }) { _, last in last }
        tokenEndpoints = configuration.upstreams.reduce(into: [:]) { paths, upstream in
            guard let head = upstream.refresh?.head(origin: upstream.origin) else { return }
            paths[head.origin, default: []].insert(head.path.lenientPath)
        }
    }

    /// Every declared and adopted upstream, and the receivers of messages.
    package let upstreams: [Upstream]
    /// Undeclared hosts with queued writes.
    package let adopted: [Upstream]

    /// The declared or adopted upstream of that name.
    package func upstream(named name: String) -> Upstream? { byName[name] }

    /// The declared upstream at that origin; of several the first with the shortest path, which has what no other one covers.
    package func upstream(for origin: OriginAddress) -> Upstream? { byOrigin[origin]?.last?.upstream }

    /// The declared upstream of a request: of several at its origin the one with the longest path that covers it.
    package func upstream(for origin: OriginAddress, target: String) -> Upstream? {
        compiled(for: origin, Self.path(of: target).plain)?.upstream
    }

    private func compiled(for origin: OriginAddress, _ path: [Substring]) -> CompiledUpstream? {
        guard let upstreams = byOrigin[origin] else { return nil }
        return upstreams.count == 1 ? upstreams[0] : upstreams.first { path.starts(with: $0.base) } ?? upstreams.last
    }

    /// The first route that matches. Where a lenient server would read the path as that of another upstream, what that one forbids holds too.
    private func route(method: String, path: PathSpellings, of declared: CompiledUpstream) -> Route? {
        let route = declared.route(method: method, path: path)
        let origin = declared.upstream.origin
        guard byOrigin[origin, default: []].count > 1, let lenient = path.lenient, let other = compiled(for: origin, lenient),
            let forbidding = other.forbidding(method: method, lenient: lenient)
        else { return route }
        return (route ?? Route(match: forbidding.match)).forbidding(as: forbidding)
    }

    /// The configuration that applies to a request.
    /// - Parameter isWrite: True if the request's body shows that it is a write, although its route treats it as a read.
    package func plan(for request: RequestHead, isWrite: Bool = false) -> RoutePlan {
        let method = request.method.rawValue
        let path = Self.path(of: request.target)
        var holdsTokens = tokenEndpoints.isEmpty ? false : tokenEndpoints[request.origin]?.contains(request.path.lenientPath) == true
        guard let declared = compiled(for: request.origin, path.plain) else {
            return undeclaredPlan(request, path: path, holdsTokens: holdsTokens)
        }
        let isOfTokens = byOrigin[request.origin]?.contains { $0.upstream.refresh?.concerns(target: request.target) == true }
        holdsTokens = holdsTokens || isOfTokens == true
        let route = route(method: method, path: path, of: declared)
        let isLogout = route?.logout == true
        let git = route?.kind == .git ? GitExchange(request) : nil
        let registry = route?.kind == .oci ? RegistryRequest(request) : nil
        let asks =
            route?.isReadByBody == true && BodyKey.declarable.contains(method) && !RepositoryExchange.isPush(request)
            && git?.asksByBody != false && (registry ?? .token) == .token
            && QueueObstacle.of(request)?.isFinal != true
        let isWrite = !request.method.isSafe && (isWrite || !asks)
        let isTelemetry = isWrite && route?.kind == .telemetry
        let entity = isTelemetry ? nil : declared.entity(request, path: path.plain, isWrite: isWrite)
        return RoutePlan(
            upstream: declared.upstream, route: route, entity: entity,
            category: route?.category.flatMap { categories[$0] },
            strategy: isLogout ? .networkOnly : route?.strategy ?? git?.strategy ?? registry?.strategy ?? .cacheFirst,
            policy: git == nil && registry == nil ? declared.upstream.policy : .offlineFirst,
            queueable: isWrite && Self.isQueueable(request, route: route, methods: declared.upstream.queue.methods)
                && !holdsTokens,
            store: holdsTokens || isLogout ? .never : route?.store ?? .standard, isWrite: isWrite)
    }

    /// The pattern of the first route of a declared upstream that matches a request; nil without one.
    package func pattern(of method: String, target: String, upstream name: String) -> String? {
        guard let upstream = byName[name], !upstream.routes.isEmpty else { return nil }
        return compiled(upstream)?.route(method: method, path: Self.path(of: target))?.match
    }

    private func compiled(_ upstream: Upstream) -> CompiledUpstream? {
        byOrigin[upstream.origin]?.first { $0.upstream.name == upstream.name }
    }

    private static func path(of target: String) -> PathSpellings {
        PathSpellings(target[..<(target.utf8.firstIndex(of: UInt8(ascii: "?")) ?? target.endIndex)])
    }

    /// The routes of declared upstreams with `on_refused: hold`, by name of the upstream. While they stay the same, so do all answers of
    /// `holdsRefused`.
    package var strictRoutes: [String: [String]] {
        byOrigin.values.joined().filter(\.holdsRefused).reduce(into: [:]) { all, one in
            all[one.upstream.name] = one.upstream.routes.map { "\($0.match) \($0.onRefused)" }
        }
    }

    /// True if the first route that matches a write says that a refused one holds the later ones of its client.
    package func holdsRefused(upstream name: String, method: String, target: String) -> Bool {
        guard let declared = byName[name].flatMap(compiled), declared.holdsRefused else { return false }
        return declared.route(method: method, path: Self.path(of: target))?.onRefused == .hold
    }

    private func undeclaredPlan(_ request: RequestHead, path: PathSpellings, holdsTokens: Bool) -> RoutePlan {
        let (origin, method) = (request.origin, request.method)
        let isWrite = !method.isSafe
        let queueable =
            isWrite && !holdsTokens && defaults.queueWrites
            && Self.isQueueable(request, route: nil, methods: QueueSettings().methods)
        let implied = queueable ? Upstream(adopting: origin, policy: defaults.policy, allowsLoopback: !admitsRemoteClients) : nil
        return RoutePlan(
            upstream: adoptedByOrigin[origin] ?? implied,
            entity: isWrite ? .guessed(method: method.rawValue, segments: path.plain.withoutTrailingSlash) : nil,
            category: categories[defaults.category], policy: defaults.policy, queueable: queueable,
            store: holdsTokens ? .never : .standard, isWrite: isWrite)
    }

    private static func isQueueable(_ request: RequestHead, route: Route?, methods: [String]) -> Bool {
        switch route?.queue {
        case _ where route?.read == true || route?.kind == .git || route?.kind == .oci: false
        case .never: false
        case .always: QueueObstacle.of(request)?.isFinal != true
        case .allowed where route?.kind == .telemetry: QueueObstacle.of(request)?.isFinal != true
        case .allowed, nil: methods.contains(request.method.rawValue) && (route?.kind == .graphql || QueueObstacle.of(request) == nil)
        }
    }
}

/// An upstream with its patterns and templates.
private struct CompiledUpstream: Sendable {
    let upstream: Upstream
    /// The segments of its path below the origin.
    let base: [Substring]
    private let patterns: [PathPattern]
    /// The patterns of paths as a lenient server may read them; empty if no route forbids anything.
    private let lenientPatterns: [PathPattern]
    private let resources: [ResourceTemplates]
    /// True if the query names the items of a resource.
    private let namesRows: Bool
    /// True if a route of it has `on_refused: hold`.
    let holdsRefused: Bool

    init(_ upstream: Upstream) {
        self.upstream = upstream
        base = upstream.basePath.isEmpty ? [] : PathSpellings(upstream.basePath[...]).plain
        patterns = upstream.routes.map { PathPattern($0.match) }
        lenientPatterns = upstream.routes.contains(where: \.forbids) ? upstream.routes.map { PathPattern($0.match, isLenient: true) } : []
        // What has one path only is meant by it: `/users/me` beside `/users/{id}`.
        let (single, several) = (upstream.resources.filter(\.isSingleton), upstream.resources.filter { !$0.isSingleton })
        resources = (single + several).map(ResourceTemplates.init)
        namesRows = resources.contains(where: \.isOfRows)
        holdsRefused = upstream.routes.contains { $0.onRefused == .hold }
    }

    /// The first route that matches, with what the first route that matches the lenient spelling of the path forbids.
    func route(method: String, path: PathSpellings) -> Route? {
        let named = patterns.firstIndex { $0.matches(method: method, segments: path.plain) }
        let route = named.map { upstream.routes[$0] }
        guard !lenientPatterns.isEmpty, let lenient = path.lenient, let other = forbidding(method: method, lenient: lenient) else {
            return route
        }
        return (route ?? Route(match: other.match)).forbidding(as: other)
    }

    /// The first route that matches the path as a lenient server may read it; nil if it forbids nothing.
    func forbidding(method: String, lenient: [Substring]) -> Route? {
        let first = lenientPatterns.firstIndex { $0.matches(method: method, segments: lenient) }
        return first.map { upstream.routes[$0] }.flatMap { $0.forbids ? $0 : nil }
    }

    /// Matches a whole path before an action, so that `/notes/{id}/comments` declared as a collection is one.
    func entity(_ request: RequestHead, path: [Substring], isWrite: Bool) -> EntityMatch? {
        let path = path.withoutTrailingSlash
        let query = namesRows && isWrite && request.method != .post ? request.query : nil
        if let match = resources.firstMatch({ $0.match(path, query: query) }), !isWrite || match.isUnderstood(request.method) {
            return match
        }
        guard isWrite else { return nil }
        return resources.firstMatch { $0.matchAction(path) } ?? .guessed(method: request.method.rawValue, segments: path)
    }
}

extension EntityMatch {
    /// False for a write to a learned collection unless such a write was seen to make an item: what it does is not known.
    fileprivate func isUnderstood(_ method: HTTPRequest.Method) -> Bool {
        guard let learned = resource?.learned, !isItem else { return true }
        return learned.isCreating && method == .post
    }
}

extension Array {
    fileprivate func firstMatch<Match>(_ match: (Element) -> Match?) -> Match? { lazy.compactMap(match).first }
}

/// The configuration that later steps need for one request (docs/architecture.md#journeys, step `route`).
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

    /// True if requests of both are treated alike: they differ at most in which entity of their resource they are about.
    package func agrees(with other: RoutePlan) -> Bool {
        if self == other { return true }
        guard let entity, let another = other.entity, entity.resource == another.resource, entity.isItem == another.isItem,
            entity.action == another.action
        else { return false }
        var plan = self
        plan.entity = another
        return plan == other
    }

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

/// Settings of a request that a route, an upstream or the defaults for undeclared hosts may have
/// (docs/reference/configuration.md#defaults).
extension Configuration {
    /// What becomes of a fetch whose client leaves: as the route says, else as the upstream or the defaults for undeclared hosts say; nil: the
    /// built-in bounds.
    package func onAbort(of plan: RoutePlan) -> AbortRule? { plan.route?.onAbort ?? setting(of: plan, \.onAbort, \.onAbort) }

    /// The staleness up to which a response is served in place of an error, by the same order; nil: as the response says.
    package func staleOnError(of plan: RoutePlan) -> TimeSpan? {
        plan.route?.staleOnError ?? setting(of: plan, \.staleOnError, \.staleOnError)
    }

    private func setting<Value>(
        of plan: RoutePlan, _ own: KeyPath<Upstream, Value>, _ shared: KeyPath<DefaultSettings, Value>
    ) -> Value {
        if let upstream = plan.upstream, upstream.isDeclared { return upstream[keyPath: own] }
        return defaults[keyPath: shared]
    }
}

/// The parent proxy of a request or a tunnel (docs/reference/configuration.md#via).
extension Configuration {
    /// The parent proxy for `origin`: its upstream's own, else that of the first rule that matches; nil for none.
    package func parent(for origin: OriginAddress, of upstream: Upstream?) -> ParentSettings? {
        if let own = upstream?.parent { return own }
        guard let rule = via.first(where: { $0.matches(origin) }), rule.parent.url != ParentRule.direct else { return nil }
        return rule.parent
    }
}

/// The receivers of Rockpool's own messages, as upstreams of the outbox (docs/outbox.md#messages).
extension Upstream {
    /// Messages are sent again for about a day.
    private static let messageAttempts = 30

    /// Returns the receivers that the configuration names, one for each kind and origin.
    static func receivers(of configuration: Configuration) -> [Upstream] {
        let hooks = configuration.notify.compactMap(\.webhook).compactMap { try? RequestHead(url: $0.url).origin }
        let offices = [configuration.fleet.report].compactMap { $0.flatMap { try? RequestHead(url: $0.url).origin } }
        let all =
            hooks.map { (ReceiverKind.webhook, $0) } + configuration.callbacks.origins.map { (ReceiverKind.callback, $0) }
            + offices.map { (ReceiverKind.report, $0) }
        var names: Set<String> = []
        return all.compactMap { kind, origin in
            let receiver = Upstream(receiving: kind, at: origin, like: configuration.upstreams.first { $0.origin == origin })
            return names.insert(receiver.name).inserted ? receiver : nil
        }
    }

    /// A receiver. Its messages have an id of their own, so a lost answer is no reason not to send one again.
    /// - Parameter declared: the upstream at the same origin, whose TLS settings and parent proxy apply.
    private init(receiving kind: ReceiverKind, at origin: OriginAddress, like declared: Upstream?) {
        self.init(
            name: kind.upstreamName(of: origin), origin: origin,
            queue: QueueSettings(uncertain: .retry, maxAttempts: Self.messageAttempts),
            idempotency: IdempotencySettings(header: "webhook-id", format: .raw, honoured: .yes, ttl: .forever))
        receiver = kind
        if let declared { (tls, parent, timeouts) = (declared.tls, declared.parent, declared.timeouts) }
    }
}
