// `rockpool fleet collect`: takes the reports of sites, lists them, and tells which are silent (docs/fleet.md#sites).
import Hummingbird
package import Logging
package import RockpoolCore
package import RockpoolEngine
package import RockpoolStore
import Synchronization

/// A collector with its two listeners.
package final class CollectorServer: Sendable {
    private static let tick = Duration.seconds(1)

    private let store: SiteStore
    private let listen: String
    private let door: AdminDoor
    private let watch: Mutex<SilenceWatch>
    private let now: @Sendable () -> Timestamp
    private let logger: Logger
    private let tell: @Sendable (JSONValue) async -> Void

    /// - Parameters:
    ///   - listen: `host:port`.
    ///   - socketPath: the Unix socket of the commands.
    ///   - allowed: the networks of the sites, beside this machine.
    ///   - silentAfter: the time without a report from which a site is silent.
    ///   - tell: receives a document about each site that becomes silent, or reports again.
    package init(
        store: SiteStore, listen: String, socketPath: String, allowed: [CIDR], descriptors: DescriptorGauge, silentAfter: TimeSpan,
        logger: Logger, now: @escaping @Sendable () -> Timestamp, tell: @escaping @Sendable (JSONValue) async -> Void
    ) {
        (self.store, self.listen, self.now, self.logger, self.tell) = (store, listen, now, logger, tell)
        watch = Mutex(SilenceWatch(limit: silentAfter, startedAt: now()))
        door = AdminDoor(
            socketPath: socketPath, isForGroup: false, timeouts: ClientTimeouts(), allowed: allowed,
            descriptors: descriptors, logger: logger)
    }

    /// Serves until the task is cancelled.
    /// - Parameter onBound: called with the bound address once both listeners are open.
    package func run(onBound: @escaping @Sendable (HostAndPort) -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await self.door.serve(try self.router(), at: self.listen, onBound: onBound) }
            group.addTask { await self.lookForSilence() }
            try await group.next()
            group.cancelAll()
        }
    }

    private func router() throws -> Router<AdminContext> {
        let routes = CollectorRoutes(store: store, now: now) { heardAt in self.isSilent(heardAt: heardAt) }
        let index = Router(context: AdminContext.self)
        routes.add(to: index)
        let router = Router(context: AdminContext.self, options: .autoGenerateHeadEndpoints)
        router.add(middleware: AdminProblems(index: RouteIndex(index)))
        router.add(middleware: CollectorGuard(token: try store.token()))
        routes.add(to: router)
        return router
    }

    private func isSilent(heardAt: Timestamp?) -> Bool { watch.withLock { $0.isSilent(heardAt: heardAt, now: now()) } }

    private func lookForSilence() async {
        while !Task.isCancelled {
            let moment = now()
            let sites = store.names().map { (name: $0, heardAt: store.record(of: $0)?.receivedAt) }
            for news in watch.withLock({ $0.news(sites, now: moment) }) {
                logger.log(level: news.isSilent ? .warning : .notice, "\(news.summary)", metadata: ["site": "\(news.site)"])
                await tell(news.json(at: moment))
            }
            try? await Task.sleep(for: Self.tick)
        }
    }
}
