// The pipeline: a function from an exchange to its reply, with the steps of docs/architecture.md#journeys.
import HTTPTypes
package import Logging
import NIOCore
package import RockpoolCore
package import RockpoolStore
import Synchronization

/// Answers exchanges: from the cache, from the upstream, or by taking a write into the outbox. Composes the parts that do so.
package final class Engine: Sendable {
    package let cache: CacheStore
    package let data: DataStore
    package let reachability: ReachabilityTable
    package let credentials: Credentials
    package let statistics = Statistics()
    /// The last exchanges.
    package let exchanges: ExchangeRing
    /// What clients were shown.
    let sight: ClientSight
    /// Tunnels that are passed on unread.
    package let tunnels: TunnelLog
    package let events = EngineEvents()
    package let traces: TraceExporter
    /// Clients that refused Rockpool's certificate.
    package let untrusting = UntrustingTable()
    /// Signed requests to gateways that break their signatures.
    package let signedArrivals = SignedArrivals()
    package let logger: Logger
    /// Rockpool's name in `Via`, unique per instance.
    package let viaName: String
    /// The wall clock of every part.
    package let now: @Sendable () -> Timestamp
    /// Judges whether that clock is trusted before data is deleted by its age.
    package let clock: ClockWatch
    /// The configuration in force.
    package let active: ActiveConfiguration
    package let upstreams: UpstreamClient
    package let notifier: OutboxNotifier
    package let renewal: CredentialRenewal
    package let reads: ReadPipeline
    package let explainer: ReadExplainer
    let ownWrites: ReadYourWrites
    let effects: OwnWriteEffects
    let writes: WritePipeline
    package let identities: KnownIdentities
    let itemsBefore: ItemsBefore
    /// What the traffic of upstreams without declared resources has shown.
    package let learning: ResourceLearning
    package let documents: OperationDocuments
    let outbound: OutboundWrites
    package let commands: OutboxCommands
    package let fastPath: FastPath
    package let relays: Relays
    /// The passwords of the proxy's clients; nil if it admits every client.
    package let proxyPasswords: ProxyPasswords?
    let finalFields: FinalFields
    private let graphQL = GraphQLRouting()
    let crossOrigin: CrossOriginReplies
    let gateways: GatewayReplies
    private let git: GitReplies
    private let registries: Registries
    private let purges: PurgeRequests
    private let setup: SetupSite
    let accessLog: (@Sendable (String) -> Void)?

    /// - Parameters:
    ///   - steady: A clock that is never set, for `ClockWatch`; nil: the system's.
    ///   - cheapWhole: The largest complete body that is fetched after a HEAD or a range request.
    ///   - accessLog: Receives the lines of the access log, and returns at once.
    ///   - unread: The reason why no upstream is known, where no configuration was read.
    ///   - document: Reads JSON, and what else descriptions of APIs are written in.
    package init(
        configuration: Configuration, cache: CacheStore, data: DataStore, origin: any Origin, viaName: String, logger: Logger,
        now: @escaping @Sendable () -> Timestamp, steady: (@Sendable () -> TimeSpan)? = nil, cheapWhole: ByteCount = .mib(4),
        accessLog: (@Sendable (String) -> Void)? = nil, unread: String? = nil,
        document: @escaping @Sendable (_ bytes: [UInt8]) -> JSONValue? = { try? JSONValue.parse($0) }
    ) {
        (self.cache, self.data, self.viaName, self.logger, self.now, self.accessLog) = (cache, data, viaName, logger, now, accessLog)
        clock = ClockWatch(wall: now(), steady: steady)
        exchanges = ExchangeRing(start: now())
        reachability = ReachabilityTable(upstreams: RouteTable(configuration).upstreams, now: now())
        credentials = Credentials(store: data, cache: cache, logger: logger, now: now)
        sight = ClientSight(directory: configuration.storage.sightDirectory, index: cache.index, ticks: cache.ticks, now: now)
        active = ActiveConfiguration(configuration, unread: unread) { [reachability] in reachability.reconfigure($0, now: now()) }
        let folded = FoldedReads()
        learning = ResourceLearning(
            cache: cache, data: data, folded: folded, active: active, logger: logger, document: document, now: now)
        upstreams = UpstreamClient(
            origin: origin, reachability: reachability, clock: clock, cache: cache, data: data, events: events, active: active,
            viaName: viaName, traffic: statistics.traffic, logger: logger, now: now)
        traces = TraceExporter(active: active, upstreams: upstreams, logger: logger)
        notifier = OutboxNotifier(
            data: data, cache: cache, credentials: credentials, events: events, active: active, replies: learning.replies, logger: logger,
            now: now)
        renewal = CredentialRenewal(
            credentials: credentials, data: data, reachability: reachability, upstreams: upstreams, notifier: notifier, active: active,
            events: events, logger: logger, now: now)
        reads = ReadPipeline(
            cache: cache, data: data, reachability: reachability, credentials: credentials, upstreams: upstreams, renewal: renewal,
            active: active, learning: learning, logger: logger, cheapWhole: cheapWhole, now: now)
        explainer = ReadExplainer(
            cache: cache, lookup: reads.lookup, credentials: credentials, reachability: reachability, active: active, now: now)
        itemsBefore = ItemsBefore(cache: cache, lookup: reads.lookup, active: active)
        ownWrites = ReadYourWrites(
            cache: cache, data: data, overlay: notifier.overlay, sight: sight, reads: reads, itemsBefore: itemsBefore, folded: folded,
            active: active, now: now)
        effects = OwnWriteEffects(cache: cache, sight: sight, reads: reads, active: active, logger: logger, now: now)
        identities = KnownIdentities(
            data: data, cache: cache, credentials: credentials, renewals: renewal.renewals, learning: learning, active: active,
            logger: logger)
        documents = OperationDocuments(
            data: data, reachability: reachability, credentials: credentials, events: events, laneHolds: notifier.laneHolds,
            pauses: notifier.pauses, active: active, now: now)
        writes = WritePipeline(
            data: data, cache: cache, credentials: credentials, events: events, reads: reads, ownWrites: ownWrites, effects: effects,
            identities: identities, itemsBefore: itemsBefore, upstreams: upstreams, renewal: renewal, notifier: notifier,
            documents: documents, logger: logger, now: now)
        outbound = OutboundWrites(
            data: data, upstreams: upstreams, renewal: renewal, credentials: credentials, reads: reads, active: active, now: now)
        commands = OutboxCommands(
            data: data, cache: cache, reachability: reachability, events: events, outbound: outbound, reads: reads, notifier: notifier,
            active: active, now: now
        ) { [effects] write, principal in await effects.note(write, by: Viewer(partition: principal), sentAt: data.moment()) }
        proxyPasswords = configuration.proxy.auth.map { ProxyPasswords($0, logger: logger, now: now) }
        finalFields = FinalFields(viaName: viaName, now: now)
        crossOrigin = CrossOriginReplies(cache: cache, data: data, reachability: reachability, active: active, logger: logger)
        git = GitReplies(cache: cache, lookup: reads.lookup, active: active, logger: logger)
        registries = Registries(cache: cache, data: data, reads: reads, active: active, logger: logger, now: now)
        (gateways, setup) = (GatewayReplies(cache: cache, active: active), SetupSite(active: active))
        purges = PurgeRequests(cache: cache, news: reads.updates.news, active: active, token: try? data.adminToken(), logger: logger)
        fastPath = FastPath(
            cache: cache, data: data, credentials: credentials, reachability: reachability, statistics: statistics,
            overlay: notifier.overlay, lookup: reads.lookup, sight: sight, active: active, finalFields: finalFields, ring: exchanges,
            now: now)
        relays = Relays(
            cache: cache, data: data, reachability: reachability, statistics: statistics, overlay: notifier.overlay, reads: reads,
            writes: writes, active: active, ring: exchanges, finalFields: finalFields, now: now)
        tunnels = TunnelLog(ring: exchanges, active: active, now: now)
        takeUp()
    }

    /// Takes up what an earlier run has left, and begins to report the health of the cache.
    private func takeUp() {
        credentials.restore(configuration.upstreams)
        sight.takeUp()
        cache.onHealthChange { [events] change in events.tell(.storage(detail: change == .recovered ? "cache recovered" : "cache off")) }
    }

    package var configuration: Configuration { active.configuration }
    /// Tells the other nodes of a fleet what a purge removes here.
    package var news: StaleNews { reads.updates.news }

    /// Keeps what clients have been shown for the next start; called once nothing is under way any more.
    package func keepSight() { sight.keep() }

    package var routes: RouteTable { active.routes }

    /// Notes that the connections of everything that is still under way are closed now, at a stop.
    package func cutOff() { writes.traces.cutOff() }

    /// Takes new routes, categories and upstreams; listeners and directories stay as they are.
    package func reconfigure(_ configuration: Configuration) {
        active.replace(by: configuration)
        ownWrites.folded.forget()
        cache.forgetHot()
        credentials.restoreSealed(configuration.upstreams)
        Task { await applyQuotas() }
    }

    /// Makes the cache keep the quotas of the upstreams in force, and evicts what exceeds them.
    package func applyQuotas() async {
        let active = active
        do {
            try await cache.setQuotas {
                active.configuration.upstreams.reduce(into: [:]) { quotas, upstream in
                    // Those of one origin share its copies.
                    guard let limit = upstream.cacheLimit else { return }
                    quotas[upstream.origin] = ByteCount((quotas[upstream.origin]?.bytes ?? 0).addedClamped(limit.bytes))
                }
            }
        } catch {
            logger.failed("the quotas of upstreams are not kept", error: error)
        }
    }

    /// Reads that wait for a response head now, from their own or a shared fetch.
    package var waitingReads: Int { reads.inFlight.waiting }
    /// Running background refreshes.
    package var refreshes: Int { reads.inFlight.refreshing }

    /// Returns the declared upstream at `origin`.
    package func upstream(for origin: OriginAddress) -> Upstream? { routes.upstream(for: origin) }

    /// Answers one exchange. Every failure becomes a reply.
    package func respond(_ exchange: Exchange) async -> Reply {
        let began = ContinuousClock.now
        var trace = Trace(method: exchange.request.method.rawValue, url: exchange.request.url, startedAt: now())
        var exchange = exchange
        let moment = relays.moment(of: exchange)
        let span = traces.begin(&exchange.request.fields)
        await gateways.receive(&exchange)
        await look(for: exchange.request)
        var reply = await answer(exchange, &trace)
        nameSeen(in: &reply)
        await crossOrigin.complete(&reply, to: exchange.request, trace)
        await gateways.complete(&reply, to: exchange)
        let upstream = routes.upstream(for: exchange.request.origin, target: exchange.request.target)
        finalFields.add(to: &reply, trace: trace, hidesTags: upstream?.tags == .hide)
        relays.learn(from: exchange, reply, since: moment)
        let took = ContinuousClock.now - began
        statistics.count(trace, took: took)
        let (final, head, fields) = (trace, reply.head, exchange.request.fields)
        // What `rockpool doctor` asks to see whether clients come here is no traffic.
        let isShown = exchange.request.target != QueuedWrite.statusPrefix + "doctor"
        reply.ended = { [self] end in
            let whole = ContinuousClock.now - began
            let full = RecordedExchange.FullExchange(
                trace: final, request: fields, response: head, end: end, began: began, head: took, whole: whole)
            record(full, span: span, isShown: isShown)
        }
        return reply
    }

    /// Takes the record of an exchange that has ended.
    /// - Parameter isShown: False if readers do not see it.
    func record(_ full: RecordedExchange.FullExchange, span: TraceSpan?, isShown: Bool = true) {
        statistics.deliver(full.end.bytes, of: full.trace)
        if isShown { exchanges.record(full, at: now()) }
        if let span { traces.end(span, full, at: full.trace.startedAt) }
        log(full.trace, status: full.response.status, end: full.end, took: full.whole)
    }

    private func answer(_ exchange: Exchange, _ trace: inout Trace) async -> Reply {
        if let write = exchange.early?.subject as? RelayedWrite { return await write.conclude(exchange, &trace) }
        if let page = setup.reply(to: exchange.request, &trace) { return page }
        if let status = await documents.statusDocument(for: exchange.request, trace: trace) { return status }
        if let purged = await purges.reply(to: exchange, &trace) { return purged }
        var exchange = exchange
        exchange.takeGatewayMark()
        let wishes: WritePreferences
        do {
            wishes = try WritePreferences(
                taking: &exchange.request.fields, now: now(), callbacks: configuration.callbacks.origins)
        } catch {
            trace.record(.refused(problem: error.problem))
            return Reply(Problem(error), trace)
        }
        if let last = lastHop(&exchange.request, trace) { return last }
        forgetReferer(&exchange.request)
        let original = exchange.request
        let namesUnmapped = replaceLocalIDs(in: &exchange.request)
        var plan = routes.plan(for: exchange.request)
        trace.record(.routed(upstream: plan.upstream?.name, category: plan.category?.name, strategy: plan.strategy))
        plan.obstacleToQueueing = crossOrigin.obstacleToQueueing(original, plan, client: exchange.client)
        if let doubt = exchange.verify(for: plan.upstream, at: now()) { plan.obstacleToQueueing = doubt.rawValue }
        signedArrivals.note(exchange, to: plan.upstream, at: now())
        let permission = reachability.permission(for: plan.upstream?.name, now: now())
        let keyingBody: KeyingBody?
        do { keyingBody = try await takeKeyingBody(of: &exchange, plan: &plan, permission: permission) } catch {
            return Reply(Exchange.problem(after: error), trace)
        }
        let asked = plan.showsState ? sight.moment() : 0
        let identity = identity(of: exchange.request, plan)
        trace.identity = identity
        var context = RequestContext(
            exchange: exchange, trace: trace, plan: plan, identity: identity, permission: permission,
            wishes: wishes,
            searchVariance: reads.lookup.searchVariance(for: exchange.request, plan: plan), keyingBody: keyingBody, original: original,
            namesUnmapped: namesUnmapped)
        if plan.route?.kind == .git { await git.keepReferences(for: context) }
        var reply =
            switch (plan.isWrite, exchange.isFromGateway) {
            case (true, _) where plan.route?.kind == .oci: await registries.write(&context, by: writes)
            case (true, _): await writes.write(&context)
            case (false, _) where plan.route?.kind == .oci: await registries.read(&context)
            // What it keeps must not contain this gateway's queued writes.
            case (false, true): await reads.readServerState(&context)
            case (false, false): await ownWrites.read(&context)
            }
        if plan.route?.kind == .git { await git.complete(&reply, to: &context) }
        if plan.route?.kind == .oci { registries.complete(&reply, to: context) }
        if plan.showsState { await sight.note(&reply, to: context, asked: asked, from: cache) }
        // A read of such a route is never answered from the cache, so the answer is the upstream's.
        if !plan.isWrite, plan.route?.logout == true, (200...399).contains(reply.head.status), let upstream = plan.upstream {
            await identities.end(context.identity, at: upstream)
        }
        trace = context.trace
        return reply
    }

    /// Reads the body of a request that says what is asked for, as those of GraphQL, Git and searches do, and plans by it; nil if the body
    /// does not count among the keys.
    private func takeKeyingBody(
        of exchange: inout Exchange, plan: inout RoutePlan, permission: Reachability.Permission
    ) async throws(TransferFailure) -> KeyingBody? {
        if plan.isWrite { try await exchange.removeMarks(of: plan.entity?.resource) }
        let body: KeyingBody?
        switch plan.route?.kind {
        case .graphql:
            let isReachable = if case .no = permission { false } else { true }
            body = try await graphQL.route(&exchange, plan: &plan, routes: routes, isReachable: isReachable)
        case .git: body = try await GitRouting.route(&exchange, plan: &plan, routes: routes)
        case .oci: body = try await Registries.route(&exchange, plan: plan)
        case .standard, .s3, .telemetry, nil: body = try await KeyingBody.read(exchange, plan: plan)
        }
        guard let isQueueable = body?.queueableWrite(of: exchange.request, on: plan) else { return body }
        // It is neither answered from the store nor stored.
        plan = routes.plan(for: exchange.request, isWrite: true)
        plan.queueable = plan.queueable && isQueueable
        exchange.take(body?.bytes ?? ByteBuffer())
        return nil
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
        guard !data.localIDs.isEmpty, let referer = request.fields[.referer] else { return }
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
            return Reply(Problem(error), trace)
        }
    }

    private func identity(of request: RequestHead, _ plan: RoutePlan) -> Identity {
        let rule = plan.upstream?.identity ?? .auto
        let identity = credentials.identity(of: request, rule: rule)
        let isNamedByCookie = if case .cookie = rule { true } else { false }
        if plan.upstream != nil { credentials.remember(identity, isProved: false, replacesUntried: isNamedByCookie) }
        return identity
    }

    /// Returns a reply for a request that was refused before it became an exchange.
    package func problem(for refusal: Refusal) -> Reply {
        var trace = Trace(method: "", url: "", startedAt: now())
        trace.verdict = .refused
        var reply = Reply(Problem(refusal), trace)
        finalFields.add(to: &reply, trace: trace)
        return reply
    }
}

// MARK: - Fleets

/// What one gateway of a fleet has accepted, another knows at once (docs/fleet.md#reads).
extension Engine {
    /// Reads what other nodes have accepted a moment ago, if the request may be about it: it has seen a later position, or names a local id that
    /// is not known here. No effect without a fleet.
    func look(for request: RequestHead) async {
        guard data.isOfFleet else { return }
        let floor = request.fields[.rockpoolSeen].flatMap { Int64($0) } ?? 0
        var target = request
        target.fields = [:]
        await data.learn(LocalIDScan.references(head: target, body: []).map(\.id), floor: floor)
    }

    /// Says up to which position a reply about a queued write has what the fleet has accepted.
    func nameSeen(in reply: inout Reply) {
        guard data.isOfFleet, reply.head.fields.contains(.rockpoolOperation) else { return }
        reply.head.fields[.rockpoolSeen] = "\(data.fleetPosition)"
    }
}
