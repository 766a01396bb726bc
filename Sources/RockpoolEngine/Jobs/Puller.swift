// Pulls upstream changes into the cache, at each resource's cadence and after a reconnection, once the outbox was sent
// (docs/outbox.md#delta-pull).
import HTTPTypes
import Logging
import NIOCore
package import RockpoolCore
import RockpoolStore
import ServiceLifecycle
import Synchronization

/// Keeps cached items and collections up to date, and detects conflicts before the writes are sent.
package final class Puller: Service {
    private static let tick = Duration.milliseconds(200)
    /// Maximum time that a due pull waits for the outbox to be sent.
    private static let patience = TimeSpan.seconds(30)
    /// The time after which a failed pull is retried, if its cadence is slower.
    private static let retry = TimeSpan.minutes(1)

    private struct State {
        var nextDue: [String: Timestamp] = [:]
        /// Upstreams that were unreachable at the last check.
        var away: Set<String> = []
        /// Scopes that are being pulled, with the callers that wait to pull each of them again.
        var underWay: [String: [CheckedContinuation<Void, Never>]] = [:]
        /// Hashes of the last pull's changes, by scope.
        var known: [String: Set<Int>] = [:]
        /// Changes of entities with pending writes, by scope and id; applied when those writes have ended.
        var withheld: [String: [String: DeltaChange]] = [:]
        /// By scope.
        var conflicts: [String: [ConflictAhead]] = [:]
    }

    private let data: DataStore
    private let cache: CacheStore
    private let active: ActiveConfiguration
    private let reachability: ReachabilityTable
    private let upstreams: UpstreamClient
    private let credentials: Credentials
    private let lookup: EntryLookup
    private let events: EngineEvents
    private let logger: Logger
    private let now: @Sendable () -> Timestamp
    /// Answers an ordinary read, by which an entry is fetched again.
    private let respond: @Sendable (Exchange) async -> Reply
    private let state = Mutex(State())

    init(
        data: DataStore, cache: CacheStore, active: ActiveConfiguration, reachability: ReachabilityTable, upstreams: UpstreamClient,
        credentials: Credentials, lookup: EntryLookup, events: EngineEvents, logger: Logger, now: @escaping @Sendable () -> Timestamp,
        respond: @escaping @Sendable (Exchange) async -> Reply
    ) {
        self.data = data
        self.cache = cache
        self.active = active
        self.reachability = reachability
        self.upstreams = upstreams
        self.credentials = credentials
        self.lookup = lookup
        self.events = events
        self.logger = logger
        self.now = now
        self.respond = respond
    }

    /// Conflicts that queued writes will meet, according to the last pull of each resource. The operations themselves are unchanged.
    package var conflictsAhead: [ConflictAhead] {
        state.withLock { $0.conflicts.values.flatMap(\.self).sorted { $0.operation < $1.operation } }
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                await self.pullDue()
                try? await Task.sleep(for: Self.tick)
            }
        }
    }

    /// Pulls every configured resource, due or not. A scope that is being pulled is pulled once more afterwards, because the running pull
    /// may have read it before the change that the caller expects.
    package func runOnce() async -> PullReport {
        var report = PullReport()
        for source in sources { await pull(source, waitingForOthers: true, report: &report) }
        return report
    }

    /// Pulls one resource now, due or not.
    func pullNow(upstream: String, collection: String) async {
        var report = PullReport()
        for source in sources where source.upstream.name == upstream && source.resource.collection == collection {
            await pull(source, waitingForOthers: true, report: &report)
        }
    }

    /// Pulls resources that are due by their cadence or after a reconnection, once the outbox was sent; without waiting where an operation
    /// is in conflict.
    @discardableResult
    package func pullDue() async -> PullReport {
        var report = PullReport()
        for source in sources where isDue(source) {
            if upstreams.budgets.isMetered(source.upstream)
                || upstreams.budgets.wait(for: .pull, with: nil, at: source.upstream, now: now()) != nil
            {
                continue
            }
            if await mustWait(source) { continue }
            await pull(source, waitingForOthers: false, report: &report)
        }
        return report
    }

    // MARK: cadence

    private var sources: [PullSource] {
        active.configuration.upstreams.flatMap { upstream in
            upstream.resources.compactMap { resource in DeltaShape(resource).map { PullSource(upstream, resource, $0) } }
        }
    }

    private func isDue(_ source: PullSource) -> Bool {
        let (name, now) = (source.upstream.name, self.now())
        let isAway = !isReachable(name)
        return state.withLock { state in
            if isAway {
                state.away.insert(name)
                return false
            }
            if state.away.remove(name) != nil {
                for key in state.nextDue.keys where key.hasPrefix("\(name)|") { state.nextDue[key] = now }
            }
            return state.nextDue[source.name].map { $0 <= now } ?? true
        }
    }

    private func isReachable(_ upstream: String) -> Bool {
        reachability.isUsable(upstream)
    }

    private func mustWait(_ source: PullSource) async -> Bool {
        let now = self.now()
        guard let standing = try? await data.standing(upstream: source.upstream.name, now: now), standing.isSending,
            !standing.isConflicted
        else { return false }
        let due = state.withLock { state in
            let due = state.nextDue[source.name] ?? now
            state.nextDue[source.name] = due
            return due
        }
        return now - due < Self.patience
    }

    // MARK: one resource

    private func pull(_ source: PullSource, waitingForOthers: Bool, report: inout PullReport) async {
        var hasFailed = false
        do {
            for scope in try await scopes(of: source) {
                guard await claim(scope.name, waits: waitingForOthers) else { continue }
                defer { release(scope.name) }
                let pulled = await pull(scope)
                hasFailed = hasFailed || pulled.error != nil
                report.scopes.append(pulled)
            }
        } catch {
            hasFailed = true
            logger.failed("pull of \(source.name)", error: error)
        }
        let wait = hasFailed ? min(source.every, Self.retry) : source.every
        state.withLock { $0.nextDue[source.name] = now() + wait }
    }

    /// Claims a scope. Returns false if it is being pulled and `waits` is false.
    private func claim(_ scope: String, waits: Bool) async -> Bool {
        while true {
            let isFree = state.withLock { state in
                if state.underWay[scope] != nil { return false }
                state.underWay[scope] = []
                return true
            }
            guard !isFree, waits else { return isFree }
            await withCheckedContinuation { continuation in
                let isWaiting = state.withLock { $0.underWay[scope]?.append(continuation) != nil }
                if !isWaiting { continuation.resume() }
            }
        }
    }

    private func release(_ scope: String) {
        for waiting in state.withLock({ $0.underWay.removeValue(forKey: scope) ?? [] }) { waiting.resume() }
    }

    /// Returns one scope for each principal with cached entries of the resource and a live credential, and one without a credential for
    /// entries that belong to no principal, or if nothing is cached yet.
    private func scopes(of source: PullSource) async throws -> [PullScope] {
        var partitions: Set<String> = []
        for prefix in source.prefixes { partitions.formUnion(try await cache.partitions(prefix: prefix)) }
        let nobodys = Set(StoragePartition.nobodys.map(\.name))
        let identities = partitions.subtracting(nobodys).sorted().compactMap { name in
            credentials.live(of: name).map { PullScope(source, principal: name, secrets: $0) }
        }
        let isAnyones = partitions.isEmpty || !partitions.isDisjoint(with: nobodys)
        return isAnyones ? [PullScope(source)] + identities : identities
    }

    private func pull(_ scope: PullScope) async -> PullReport.Scope {
        var result = PullReport.Scope(scope)
        do {
            guard isReachable(scope.source.upstream.name) else { throw DeltaFault("the upstream is away") }
            let sentAt = cache.moment()
            let known = try await data.pulledScopes(prefix: scope.name).first { $0.name == scope.name }
            let isFull =
                known?.fullAt.map { fullAt in
                    sentAt.at - fullAt >= scope.source.fullEvery
                        && upstreams.budgets.permitsLargeTransfers(scope.source.upstream, at: sentAt.at)
                } ?? true
            let outcome = try await outcome(of: scope, since: known?.cursor, isFull: isFull)
            // Without a stored cursor its copies may have been removed (docs/outbox.md#forgotten).
            if known == nil { state.withLock { $0.known[scope.name] = nil } }
            let (withheld, before) = state.withLock { ($0.withheld[scope.name, default: [:]], $0.known[scope.name, default: []]) }
            let applied = try await PullApplication(
                data: data, cache: cache, active: active, upstreams: upstreams, lookup: lookup, now: now, respond: respond, scope: scope,
                sentAt: sentAt
            )
            .apply(outcome, withheld: withheld, known: before)
            try await note(applied, of: scope)
            try await data.recordPull(
                PulledScope(
                    name: scope.name, cursor: outcome.cursor, syncedAt: sentAt.at, fullAt: outcome.isFull ? sentAt.at : known?.fullAt,
                    serverCount: applied.serverCount ?? known?.serverCount),
                upstream: scope.source.upstream.name, type: scope.source.resource.collection, gone: applied.gone,
                deletedAt: applied.deletedAt, present: applied.present, now: now())
            state.withLock { $0.known[scope.name] = Set(outcome.changes.map(\.hashValue)) }
            result.count(outcome, applied)
        } catch {
            result.error = (error as? DeltaFault)?.detail ?? (error as? TransferFailure)?.proxyErrorName ?? "\(error)"
            logger.info("pull of \(scope.source.name): \(result.error ?? "")")
        }
        return result
    }

    /// Requests every page, in order. If the upstream no longer knows the cursor (410), starts again without one.
    private func outcome(of scope: PullScope, since: DeltaCursor?, isFull: Bool) async throws -> DeltaOutcome {
        var pull = DeltaPull(scope.source.shape, base: scope.request, since: since, isFull: isFull)
        var action = pull.start()
        while true {
            switch action {
            case .finished(let outcome): return outcome
            case .failed(let why): throw DeltaFault(why)
            case .ask(let request):
                let answer = try await upstreams.send(request, body: .none, upstream: scope.source.upstream, forClient: false)
                let (bytes, isWhole) = try await answer.body.collect(upTo: JSONValue.sizeLimit)
                if answer.head.status == 410, since != nil { return try await outcome(of: scope, since: nil, isFull: true) }
                guard answer.head.status == 200 else { throw DeltaFault("\(request.target): \(answer.head.status)") }
                guard isWhole else { throw DeltaFault("\(request.target): more than \(JSONValue.sizeLimit) bytes") }
                action = pull.received(Array(bytes.readableBytesView), fields: answer.head.fields)
            }
        }
    }

    /// Keeps the changes held back for the next run, and reports each conflict ahead once.
    private func note(_ applied: PullApplication.Applied, of scope: PullScope) async throws {
        state.withLock { state in
            state.withheld[scope.name] = applied.withheld
            state.conflicts[scope.name] = applied.conflicts
        }
        for conflict in applied.conflicts {
            let isNews = try await data.log(
                "conflict-ahead", operation: conflict.operation, detail: conflict.detail, now: now())
            if isNews { events.tell(.conflictAhead(operation: conflict.operation)) }
        }
    }
}

// MARK: - Units of a pull

/// A resource that is configured to be pulled.
struct PullSource: Sendable {
    let upstream: Upstream
    let resource: Resource
    let shape: DeltaShape

    init(_ upstream: Upstream, _ resource: Resource, _ shape: DeltaShape) {
        self.upstream = upstream
        self.resource = resource
        self.shape = shape
    }

    /// The common prefix of its scopes' names.
    var name: String { "\(upstream.name)|\(resource.collection)|" }
    var every: TimeSpan { (resource.delta ?? Self.cadence).every }
    var fullEvery: TimeSpan { (resource.delta ?? Self.cadence).fullEvery }

    /// URL prefixes of its cached entries: the collection's, and that of the items if they are not below the collection.
    var prefixes: [String] {
        let items = upstream.origin.url + resource.itemPrefix
        let collection = upstream.origin.url + resource.collection
        return items.hasPrefix(collection) ? [collection] : [collection, items]
    }

    /// The defaults of `delta`, for a resource that is pulled without it (`sync.pull`).
    private static let cadence = Resource.Delta(query: "", cursor: "")
}

/// One resource as one principal sees it (docs/outbox.md#delta-pull; docs/reference/admin-api.md#sync `POST /v1/sync/pull`).
struct PullScope: Sendable {
    let source: PullSource
    /// Nil without a credential.
    let principal: String?
    /// The fields of every request, the credential included.
    let fields: HTTPFields

    init(_ source: PullSource, principal: String? = nil, secrets: HTTPFields = [:]) {
        self.source = source
        self.principal = principal
        var fields: HTTPFields = [.accept: "application/json", .userAgent: "rockpool"]
        for field in secrets { fields.append(field) }
        self.fields = fields
    }

    var name: String { source.name + (principal ?? "") }
    var request: RequestHead { request("/") }
    func request(_ target: String) -> RequestHead {
        RequestHead(method: .get, origin: source.upstream.origin, target: target, fields: fields)
    }

    /// The cache partitions that it may write to.
    var partitions: [StoragePartition] { principal.map { [.identity($0)] } ?? StoragePartition.nobodys }
}

// MARK: - Report

/// The report of one run of the puller (docs/reference/admin-api.md#sync `POST /v1/sync/pull`).
package struct PullReport: Hashable, Sendable {
    /// The pull of one resource for one principal.
    package struct Scope: Hashable, Sendable {
        package var upstream: String
        /// The path of its collection.
        package var resource: String
        /// True if a credential was used.
        package var isPrivate: Bool
        /// True if the full listing was read.
        package var isFull = false
        package var requests = 0
        /// The number of entities that the upstream reported as changed, and as deleted.
        package var changed = 0
        package var gone = 0
        /// The number of cache entries that were updated, removed, and invalidated.
        package var written = 0
        package var removed = 0
        package var invalidated = 0
        /// Changes of entities with pending writes, held back until those writes have ended.
        package var withheld = 0
        package var conflictsAhead = 0
        /// The reason of an early end; the cursor then stays, and the next run repeats the pull.
        package var error: String?

        init(_ scope: PullScope) {
            upstream = scope.source.upstream.name
            resource = scope.source.resource.collection
            isPrivate = scope.principal != nil
        }

        mutating func count(_ outcome: DeltaOutcome, _ applied: PullApplication.Applied) {
            isFull = outcome.isFull
            requests = outcome.pages
            changed = applied.present.count
            gone = applied.gone.count
            (written, removed, invalidated) = (applied.written, applied.removed, applied.invalidated)
            (withheld, conflictsAhead) = (applied.withheld.count, applied.conflicts.count)
        }
    }

    package var scopes: [Scope] = []
}
