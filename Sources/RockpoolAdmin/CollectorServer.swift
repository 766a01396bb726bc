// `rockpool fleet collect`: takes the reports of sites, lists them, and tells which are silent (docs/fleet.md#sites).
import HTTPTypes
import Hummingbird
package import Logging
import NIOCore
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

/// `POST /v1/reports` and the list of sites (docs/fleet.md#sites).
struct CollectorRoutes {
    static let reports = "/v1/reports"
    static let health = "/healthz"
    /// Bytes of a report at most.
    private static let reportLimit = Int.kib(64)

    let store: SiteStore
    let now: @Sendable () -> Timestamp
    /// True if a site with this last report is silent.
    let isSilent: @Sendable (Timestamp?) -> Bool

    func add(to router: Router<AdminContext>) {
        router.get("/healthz") { _, _ in Response(status: .noContent) }
        router.post("/v1/reports") { request, _ in try await take(request) }
        router.get("/v1/sites") { _, _ in Response.json(["items": .array(sites()), "next": .null]) }
        router.get("/v1/fleet/status") { _, _ in Response.json(["nodes": [], "sites": .array(sites())]) }
    }

    /// Keeps a report, if it is signed by its site. The answer to one that is not does not tell which sites there are.
    private func take(_ request: Request) async throws -> Response {
        guard let body = try? await request.body.collect(upTo: Self.reportLimit) else {
            return .problem(.bodyTooLarge, detail: "a report has at most \(Self.reportLimit) bytes")
        }
        let bytes = Array(body.readableBytesView)
        guard let report = (try? JSONValue.parse(bytes))?["data"], let site = report["site"]?.string else {
            return .problem(.badRequest, detail: "a report is a JSON object with data.site")
        }
        guard let signature = store.signature(of: site) else {
            return .problem(.unauthorized, detail: "\(WebhookSignature.Doubt.wrong)")
        }
        let moment = now()
        let message: (id: String, sentAt: Timestamp)
        do { message = try signature.verify(request.headers, body: bytes, now: moment) } catch {
            return .problem(.unauthorized, detail: "\(error == .unsigned ? .wrong : error)")
        }
        if let member = SiteReportForm.fault(in: report) {
            return .problem(.badRequest, detail: "\(member) of the report is not what docs/fleet.md#sites says")
        }
        let record = SiteRecord(site: site, receivedAt: moment, sentAt: message.sentAt, id: message.id, report: report)
        do {
            // A report older than the last one was received before, or is overtaken: for its sender it is delivered.
            _ = try store.keep(record)
            return Response(status: .noContent)
        } catch {
            return .problem(.notQueueable, detail: "\(error)")
        }
    }

    private func sites() -> [JSONValue] {
        store.names().map { name in
            let record = store.record(of: name)
            return [
                "site": .string(name), "silent": .bool(isSilent(record?.receivedAt)), "heardAt": .time(record?.receivedAt),
                "sentAt": .time(record?.sentAt), "report": record.map { SiteReportForm.readable($0.report) } ?? .null,
            ]
        }
    }
}

/// Refuses callers of the TCP port that lack the token.
struct CollectorGuard: RouterMiddleware {
    typealias Context = AdminContext

    let token: String

    func handle(
        _ request: Request, context: AdminContext, next: (Request, AdminContext) async throws -> Response
    ) async throws -> Response {
        let isReport = request.method == .post && request.uri.path == CollectorRoutes.reports
        let isHealth = (request.method == .get || request.method == .head) && request.uri.path == CollectorRoutes.health
        guard context.isThroughSocket || isReport || isHealth || request.carries(token: token) else {
            return .tokenNeeded(by: "calls through the port")
        }
        return try await next(request, context)
    }
}
