// The admin API's two listeners: a loopback TCP port for browsers and scripts, a Unix socket for the command line
// (docs/reference/admin-api.md#access).
import Glibc
import Hummingbird
package import Logging
import NIOCore
package import RockpoolCore
package import RockpoolEngine
import ServiceLifecycle

package struct AdminServer: Service {
    private let engine: Engine
    private let cleaner: Cleaner
    private let puller: Puller
    private let notices: NoticeSender?
    private let settings: AdminSettings
    let socketPath: String
    private let token: String
    private let startedAt: Timestamp
    private let feed: EventFeed
    private let timeouts: ClientTimeouts
    private let allowed: [CIDR]
    private let descriptors: DescriptorGauge
    private let logger: Logger
    private let doors: ClientEndpoints?
    private let facts: ServerFacts
    private let codes = DashboardCodes()
    private let recorder: OperationRecorder
    private let history: StorageHistory
    private let followers = FollowerCount(limit: 32)
    private let bound = BoundAddress()
    private let onBound: @Sendable (HostAndPort) -> Void

    /// - Parameters:
    /// - notices: sends tests of notices; nil without them.
    /// - socketPath: where the Unix socket is made; a stale one is replaced.
    /// - doors: the addresses that clients are set up with; nil without proxy listeners.
    /// - facts: the parts of the process that the API shows and reloads.
    /// - timeouts: the time limits of a client.
    /// - allowed: the networks whose clients may connect to the TCP port, beside those on this machine.
    /// - descriptors: the budget from which the number of connections follows.
    /// - onBound: called with the bound address once both listeners are open.
    package init(
        engine: Engine, cleaner: Cleaner, puller: Puller, notices: NoticeSender? = nil, settings: AdminSettings, socketPath: String,
        token: String, startedAt: Timestamp,
        doors: ClientEndpoints? = nil, facts: ServerFacts = ServerFacts(), timeouts: ClientTimeouts = ClientTimeouts(),
        allowed: [CIDR] = [],
        descriptors: DescriptorGauge = DescriptorGauge(.unlimited), logger: Logger, onBound: @escaping @Sendable (HostAndPort) -> Void
    ) {
        self.engine = engine
        self.cleaner = cleaner
        self.puller = puller
        self.notices = notices
        self.settings = settings
        self.socketPath = socketPath
        self.token = token
        self.startedAt = startedAt
        // Event streams may take at most half of the connections, so that other calls always have some.
        feed = EventFeed(
            stats: StatsDocument(engine: engine, startedAt: startedAt), events: engine.events,
            streamLimit: min(EventFeed.streamLimit, descriptors.budget.adminConnections / 2))
        recorder = OperationRecorder(engine: engine)
        history = StorageHistory(cache: engine.cache, data: engine.data, now: engine.now)
        self.timeouts = timeouts
        self.allowed = allowed
        self.descriptors = descriptors
        self.doors = doors
        self.facts = facts
        self.logger = logger
        self.onBound = onBound
    }

    package func run() async throws {
        async let _ = feed.run()
        async let _ = recorder.run()
        async let _ = followers.run()
        async let _ = history.run()
        try await door.serve(router(), at: settings.listen) { [bound, onBound] address in
            bound.set(address)
            onBound(address)
        }
    }

    /// The two listeners.
    var door: AdminDoor {
        AdminDoor(
            socketPath: socketPath, isForGroup: settings.socketAccess == .group, timeouts: timeouts, allowed: allowed,
            descriptors: descriptors, logger: logger)
    }

    /// The address of the dashboard on this machine: as bound, else as configured.
    private var dashboardAddress: @Sendable () -> String {
        { [settings, bound] in
            guard var place = bound.address ?? HostAndPort(settings.listen) else { return "http://\(settings.listen)/" }
            if place.isWildcard { place.host = place.host == "::" ? "::1" : "127.0.0.1" }
            return "http://\(place)/"
        }
    }

    func router() -> Router<AdminContext> {
        let routes = Router(context: AdminContext.self)
        add(to: routes)
        let router = Router(context: AdminContext.self, options: .autoGenerateHeadEndpoints)
        router.add(middleware: AdminProblems(index: RouteIndex(routes)))
        router.add(middleware: AdminGuard(hosts: Set(settings.hosts), token: token))
        add(to: router)
        return router
    }

    private func add(to router: Router<AdminContext>) {
        PageRoutes().add(to: router)
        let (cache, data, active, now) = (engine.cache, engine.data, engine.active, engine.now)
        let (reachability, commands, documents) = (engine.reachability, engine.commands, engine.documents)
        StatusRoutes(
            cache: cache, data: data, active: active, reachability: reachability,
            refusedWrites: engine.notifier.refusedWrites, budgets: engine.upstreams.budgets, parents: engine.upstreams.proxies,
            feed: feed, now: now, facts: facts, dashboard: dashboardAddress
        ).add(to: router)
        ServerRoutes(data: data, facts: facts, codes: codes, token: token, clock: now, dashboard: dashboardAddress).add(to: router)
        DocumentationRoutes(pages: facts.documentation).add(to: router)
        FleetRoutes(data: data).add(to: router)
        EventRoutes(feed: feed).add(to: router)
        RequestRoutes(exchanges: engine.exchanges, active: active, statistics: engine.statistics, followers: followers, now: now).add(
            to: router)
        MetricsRoute(
            cache: cache, data: data, active: active, reachability: reachability, statistics: engine.statistics,
            measures: engine.notifier.measures, traces: engine.traces, parents: engine.upstreams.parents,
            startedAt: startedAt, facts: facts, feed: feed, now: now
        ).add(to: router)
        OperationRoutes(data: data, active: active, commands: commands, documents: documents, now: now).add(to: router)
        ConflictRoutes(data: data, active: active, commands: commands, documents: documents).add(to: router)
        StorageRoutes(cache: cache, data: data, active: active, cleaner: cleaner, history: history, now: now).add(to: router)
        NetworkRoutes(
            active: active, reachability: reachability, upstreams: engine.upstreams, untrusting: engine.untrusting,
            signedArrivals: engine.signedArrivals, events: engine.events, now: now
        ).add(to: router)
        CacheRoutes(
            cache: cache, news: engine.news, active: active, explainer: engine.explainer, prefetch: PrefetchRoute(engine: engine),
            bundles: BundleRoutes(cache: cache, reads: engine.reads, active: active, now: now), now: now
        ).add(to: router)
        IdentityRoutes(identities: engine.identities, commands: commands).add(to: router)
        SyncRoutes(data: data, commands: commands, puller: puller, credentials: engine.credentials).add(to: router)
        LearnedRoutes(learning: engine.learning, active: active).add(to: router)
        if let notices { NotifyRoutes(sender: notices, data: data, active: active, events: engine.events).add(to: router) }
        if let doors {
            ClientRoutes(active: active, doors: doors).add(to: router)
            SetupRoutes(certificatePath: doors.certificatePath).add(to: router)
        }
    }
}

extension StatsDocument {
    init(engine: Engine, startedAt: Timestamp) {
        self.init(
            cache: engine.cache, data: engine.data, statistics: engine.statistics, measures: engine.notifier.measures,
            tunnels: engine.tunnels, active: engine.active, now: engine.now, startedAt: startedAt)
    }
}

/// The Unix socket alone, for a command that works on the stores of a stopped server.
extension AdminServer {
    /// Serves on the socket while `body` runs, then removes it. Throws the error of `body`, or the reason why the socket cannot be made.
    package func servingSocket<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
        let door = door
        try door.checkSocketPath()
        unsafe unlink(socketPath)
        let (path, (opened, open)) = (socketPath, AsyncStream.makeStream(of: Void.self))
        let socket = door.application(for: router(), at: .unixDomainSocket(path: path)) { _ in
            unsafe chmod(path, 0o600)
            open.yield()
        }
        defer { unsafe unlink(path) }
        let server = Task {
            // Ends the wait below if the socket cannot be opened.
            defer { open.finish() }
            try await socket.run()
        }
        var iterator = opened.makeAsyncIterator()
        guard await iterator.next() != nil else {
            try await server.value
            throw AdminFailure("cannot listen on \(path)")
        }
        do {
            let value = try await body()
            server.cancel()
            _ = await server.result
            return value
        } catch {
            server.cancel()
            _ = await server.result
            throw error
        }
    }
}

/// The reason why the admin API cannot be served.
package struct AdminFailure: Error, CustomStringConvertible {
    package let description: String
    init(_ description: String) { self.description = description }
}
