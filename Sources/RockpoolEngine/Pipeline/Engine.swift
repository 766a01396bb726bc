// The pipeline: a function from an exchange to its reply, with the steps of docs/architecture.md#journeys.
import HTTPTypes
package import Logging
import NIOCore
package import RockpoolCore
package import RockpoolStore
import Synchronization

/// Answers exchanges: from the cache, from the upstream, or by queueing a write in the outbox.
package final class Engine: Sendable {
    package let cache: CacheStore
    package let data: DataStore
    package let reachability: ReachabilityTable
    package let credentials: Credentials
    package let statistics = Statistics()
    package let events = EngineEvents()
    /// Clients that reject Rockpool's certificate.
    package let untrusting = UntrustingTable()
    package let logger: Logger
    /// This proxy's name in `Via`, unique per instance.
    package let viaName: String
    /// The wall clock of the engine.
    package let now: @Sendable () -> Timestamp
    /// Judges whether the wall clock can be trusted, before anything expires by age.
    package let clock: ClockWatch
    /// The running coalesced fetches.
    let fills = FillTable()
    let sightings = Sightings()
    /// Listeners that end connections outside the engine when the network is switched off.
    let switchListeners = Mutex<[@Sendable (OriginAddress?) -> Void]>([])
    let writeAnswers = WriteAnswers()
    /// Running probes, by upstream.
    let probes = Mutex<[String: Task<Void, Never>]>([:])
    /// Serialises the joining of stored parts, per key.
    let joins = KeyTurns()
    /// Queued writes that reads must include.
    let overlay = Overlay()
    let inbox = ReplayInbox()
    /// The client idempotency keys of requests in progress.
    let keysUnderWay = KeysUnderWay()
    let laneHolds = LaneHolds()
    /// Refresh tokens received by clients, and the running refreshes.
    let renewals = Renewals()
    let origin: any Origin
    /// Maximum size of a whole that is fetched after a HEAD or range request; of a larger one only the requested part is fetched.
    let cheapWhole: ByteCount
    private let accessLog: (@Sendable (String) -> Void)?
    private let settings: Mutex<(configuration: Configuration, routes: RouteTable)>

    /// - Parameters:
    ///   - steady: A clock that is never set, for `ClockWatch`; nil for the system's.
    ///   - cheapWhole: Maximum size of a whole that is fetched after a HEAD or range request.
    ///   - accessLog: Receives the lines of the access log, and must return immediately.
    package init(
        configuration: Configuration, cache: CacheStore, data: DataStore, origin: any Origin, viaName: String, logger: Logger,
        now: @escaping @Sendable () -> Timestamp, steady: (@Sendable () -> TimeSpan)? = nil, cheapWhole: ByteCount = .mib(4),
        accessLog: (@Sendable (String) -> Void)? = nil
    ) {
        self.cache = cache
        self.data = data
        self.origin = origin
        self.viaName = viaName
        self.logger = logger
        self.now = now
        self.clock = ClockWatch(wall: now(), steady: steady)
        self.cheapWhole = cheapWhole
        self.accessLog = accessLog
        self.reachability = ReachabilityTable(upstreams: configuration.upstreams, now: now())
        self.credentials = Credentials(store: data, logger: logger, now: now)
        self.settings = Mutex((configuration, RouteTable(configuration)))
        credentials.restore(configuration.upstreams)
        cache.onHealthChange { [events] change in events.tell(.storage(detail: change == .recovered ? "cache recovered" : "cache off")) }
    }

    package var configuration: Configuration { settings.withLock { $0.configuration } }
    package var routes: RouteTable { settings.withLock { $0.routes } }

    /// Applies new routes, categories and upstreams; listeners and directories are unchanged.
    package func reconfigure(_ configuration: Configuration) {
        settings.withLock {
            $0 = (configuration, RouteTable(configuration, adopting: $0.routes.adopted.map(\.origin)))
            reachability.reconfigure($0.routes.upstreams, now: now())
        }
        cache.forgetHot()
        credentials.restoreSealed(configuration.upstreams)
    }

    /// Changes the set of undeclared hosts that are known because writes wait for them.
    ///
    /// - Returns: False if there would be more than `limit`; then nothing changes.
    func changeAdopted(limit: Int = .max, _ change: (inout Set<OriginAddress>) -> Void) -> Bool {
        settings.withLock { settings in
            let known = Set(settings.routes.adopted.map(\.origin))
            var adopted = known
            change(&adopted)
            guard adopted != known else { return true }
            guard adopted.count <= limit else { return false }
            settings.routes = RouteTable(settings.configuration, adopting: adopted.sorted { $0.url < $1.url })
            // Called within the lock, so that concurrent changes reach the table in the same order.
            reachability.reconfigure(settings.routes.upstreams, now: now())
            return true
        }
    }

    /// Reads that wait for a response head now, from their own or a shared fetch.
    package var waitingReads: Int { fills.waiting }
    /// Running background refreshes.
    package var refreshes: Int { fills.refreshing }

    /// Returns the declared upstream at `origin`.
    package func upstream(for origin: OriginAddress) -> Upstream? { routes.upstream(for: origin) }

    /// Answers one exchange. Every failure becomes a reply.
    package func respond(_ exchange: Exchange) async -> Reply {
        let began = ContinuousClock.now
        var trace = Trace(method: exchange.request.method.rawValue, url: exchange.request.url, startedAt: now())
        var reply = await answer(exchange, &trace)
        deliver(&reply, trace)
        statistics.count(trace, took: ContinuousClock.now - began)
        let (final, status) = (trace, reply.head.status)
        reply.ended = { [self] end in log(final, status, end, took: ContinuousClock.now - began) }
        return reply
    }

    private func answer(_ exchange: Exchange, _ trace: inout Trace) async -> Reply {
        if let status = await statusDocument(for: exchange.request, trace) { return status }
        var exchange = exchange
        let wishes: WriteWishes
        do {
            wishes = try WriteWishes(taking: &exchange.request.fields, now: now())
        } catch {
            trace.record(.refused(problem: error.problem))
            return reply(Problem(error), trace)
        }
        if let last = lastHop(&exchange.request, trace) { return last }
        forgetReferer(&exchange.request)
        let original = exchange.request
        let namesUnmapped = replaceLocalIDs(in: &exchange.request)
        var plan = routes.plan(for: exchange.request)
        trace.record(.routed(upstream: plan.upstream?.name, category: plan.category?.name, strategy: plan.strategy))
        let permission = reachability.permission(for: plan.upstream?.name, now: now())
        var keyingBody: KeyingBody?
        do {
            keyingBody = try await KeyingBody.read(exchange, plan)
            if let write = keyingBody?.graphQLWrite(plan) {
                // A GraphQL write is neither answered from the store nor stored. A query named only by its hash may be a mutation, so it is
                // never queued.
                plan = routes.plan(for: exchange.request, isWrite: true)
                plan.queueable = plan.queueable && write != .unknown
                let bytes = keyingBody?.bytes ?? ByteBuffer()
                (exchange.body, exchange.bodyLength) = (BodyPipe(whole: bytes), Int64(bytes.readableBytes))
                keyingBody = nil
            }
        } catch {
            return reply(Problem(.badRequest, detail: "the body broke off: \(error.detail)"), trace)
        }
        var context = RequestContext(
            exchange: exchange, trace: trace, plan: plan, identity: identity(of: exchange.request, plan), permission: permission,
            wishes: wishes,
            searchVariance: searchVariance(for: exchange.request, plan), keyingBody: keyingBody, original: original,
            namesUnmapped: namesUnmapped)
        let reply = plan.isWrite ? await write(&context) : await read(&context)
        trace = context.trace
        return reply
    }

    /// Replaces local ids by the server's ids, because clients may use a local id indefinitely.
    /// - Returns: True if a local id has no server id yet. Then the request is unchanged and must not be sent.
    private func replaceLocalIDs(in request: inout RequestHead) -> Bool {
        guard !data.localIDs.isEmpty else { return false }
        // Credentials are excluded from the search: they must be sent unchanged.
        let secrets = HTTPFields(request.fields.filter { SecretFields.contains($0.name) })
        var open = request
        for field in secrets { open.fields[values: field.name] = [] }
        guard LocalIDScan.mayOccur(head: open, body: []) else { return false }
        do {
            request = try data.localIDs.substituted(open, []).head
            for field in secrets { request.fields.append(field) }
            return false
        } catch {
            return true
        }
    }

    /// Removes a `Referer` that contains a local id: the id must not be sent, and the request itself is not about that entity.
    private func forgetReferer(_ request: inout RequestHead) {
        guard !data.localIDs.isEmpty, let referer = request.fields[.referer], referer.contains("loc") else { return }
        let page = RequestHead(method: .get, origin: request.origin, target: "/", fields: [.referer: referer])
        if LocalIDScan.mayOccur(head: page, body: []) { request.fields[.referer] = nil }
    }

    /// Returns the reply to OPTIONS if this proxy is its last recipient (RFC 9110 §7.6.2).
    private func lastHop(_ request: inout RequestHead, _ trace: Trace) -> Reply? {
        do {
            guard case .answer = try MaxForwards.counted(method: request.method.rawValue, in: &request.fields) else { return nil }
            let allowed = "GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE"
            return Reply(head: ResponseHead(status: 200, fields: [.allow: allowed]), body: .none(length: 0), trace: trace)
        } catch {
            return reply(Problem(error), trace)
        }
    }

    /// Returns the key of a request without a body in one partition.
    func key(of request: RequestHead, _ plan: RoutePlan, in partition: StoragePartition) -> CacheKey {
        var request = request
        if let variance = searchVariance(for: request, plan) { request.target = variance.normalized(target: request.target) }
        return CacheKey(request, identity: partition.name)
    }

    /// The equivalence of the path's queries: from the route, otherwise from the origin's last `No-Vary-Search`.
    private func searchVariance(for request: RequestHead, _ plan: RoutePlan) -> SearchVariance? {
        plan.searchVariance ?? cache.searchRule(ofPath: request.urlWithoutQuery).flatMap { SearchVariance(fieldValue: $0) }
    }

    private func identity(of request: RequestHead, _ plan: RoutePlan) -> Identity {
        let identity = credentials.identity(of: request, rule: plan.upstream?.identity ?? .auto)
        if plan.upstream != nil { credentials.remember(identity, isProved: false) }
        return identity
    }

    /// The last step: adds the fields that every reply carries.
    func deliver(_ reply: inout Reply, _ trace: Trace) {
        reply.trace = trace
        Via.appended(to: &reply.head.fields, version: "1.1", name: viaName)
        let status = trace.cacheStatus ?? CacheStatus(hit: false, detail: "generated")
        reply.head.fields.append(HTTPField(name: .cacheStatus, value: status.fieldValue))
        if let status = trace.proxyStatus { reply.head.fields.append(HTTPField(name: .proxyStatus, value: status.fieldValue)) }
        if !reply.head.fields.contains(.date) { reply.head.fields[.date] = HTTPDate.format(now()) }
    }

    /// True if the access log records every exchange.
    package var logsAccess: Bool { accessLog != nil && configuration.log.access != .off }

    private func log(_ trace: Trace, _ status: Int, _ end: ReplyEnd, took: Duration) {
        if logsAccess {
            let line = AccessLine(
                at: trace.startedAt, method: trace.method, url: trace.url, status: status, bytes: end.bytes,
                seconds: took / .seconds(1), verdict: trace.verdict.rawValue, cacheStatus: trace.cacheStatus?.fieldValue,
                error: end.error ?? trace.proxyStatus?.error.rawValue)
            line.text(configuration.log.access).map { accessLog?($0) }
        }
        logger.debug(
            "exchange",
            metadata: [
                "method": "\(trace.method)", "url": "\(trace.url.prefix { $0 != "?" })", "status": "\(status)",
                "verdict": "\(trace.verdict.rawValue)", "cache": "\(trace.cacheStatus?.fieldValue ?? "-")",
            ])
    }

    /// Returns a reply for a request that was refused before it became an exchange.
    package func problem(for refusal: Refusal) -> Reply {
        let trace = Trace(method: "", url: "", startedAt: now())
        var reply = self.reply(Problem(refusal), trace)
        deliver(&reply, trace)
        return reply
    }

    func reply(_ problem: Problem, _ trace: Trace) -> Reply {
        var (head, body) = problem.response
        if trace.proxyStatus == nil { head.fields[.proxyStatus] = ProxyStatus(error: problem.proxyError).fieldValue }
        return Reply(head: head, body: .bytes(body), trace: trace)
    }
}

extension HTTPField.Name {
    static let cacheStatus = known("Cache-Status")
    static let proxyStatus = known("Proxy-Status")
    static let prefer = known("Prefer")
    static let pragma = known("Pragma")
    static let preferenceApplied = known("Preference-Applied")
    static let rockpoolOperation = known("Rockpool-Operation")
    static let rockpoolState = known("Rockpool-State")
    static let rockpoolPolicy = known("Rockpool-Policy")
    static let rockpoolPriority = known("Rockpool-Priority")
    static let rockpoolExpires = known("Rockpool-Expires")
    static let rockpoolDependsOn = known("Rockpool-Depends-On")
    static let rockpoolGroup = known("Rockpool-Group")
    static let rockpoolNoMerge = known("Rockpool-No-Merge")
    static let rockpoolLocalID = known("Rockpool-Local-Id")
    static let rockpoolPending = known("Rockpool-Pending")
    static let rockpoolDirty = known("Rockpool-Dirty")

    /// Returns the field name for a literal, which is always a valid token.
    private static func known(_ name: String) -> HTTPField.Name { HTTPField.Name(name) ?? .warning }
    private static let warning = HTTPField.Name.via
}
