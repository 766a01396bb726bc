// Reads: looked up, reused as the rules allow, else fetched; stored while they stream (RFC 9111; design §2).
import HTTPTypes
import Logging
import NIOCore
package import RockpoolCore
import RockpoolStore

extension Engine {
    /// Answers a read.
    func read(_ job: Job, _ trace: inout Trace) async -> Reply {
        let found = await lookup(job)
        trace.record(.looked(candidates: found.count))
        let context = reuseContext(job, found)
        let decision = Reuse.decide(candidates: found.map(\.response), request: job.request, context: context, now: now())
        trace.record(.decided(decision.name))
        switch decision {
        case .fresh(let index, let freshness):
            trace.verdict = .hit
            if let hit = await serve(found[index], freshness, job, &trace) { return hit }
            return await fetchNew(job, .uriMiss, [], context, &trace)
        case .stale(let index, let freshness, let reason):
            trace.verdict = .stale
            return await serveStale(found[index], freshness, reason, job, context, &trace)
        case .validate(let index, let freshness, let conditionals, let reason):
            return await validate(found, index, freshness, conditionals, reason, job, context, &trace)
        case .none(let reason):
            return await fetchNew(job, reason.forward, found, context, &trace)
        case .gatewayTimeout(let reason):
            trace.verdict = .failed
            trace.cacheStatus = CacheStatus(hit: false, fwd: reason.forward, detail: reason.rawValue)
            return reply(Problem(.onlyIfCached, detail: "nothing stored can answer this request (\(reason.rawValue))"), trace)
        }
    }

    /// Every stored variant the request may see: its own partition first, then the shared one.
    private func lookup(_ job: Job) async -> [CacheEntry] {
        guard job.plan.strategy != .networkOnly else { return [] }
        var found: [CacheEntry] = []
        for partition in StoragePartition.readable(by: job.identity.partition) {
            let key = CacheKey(job.request, identity: partition.name)
            do { found += try await cache.lookup(key) } catch { logger.failed("cache lookup failed", error) }
        }
        return found
    }

    private func reuseContext(_ job: Job, _ found: [CacheEntry]) -> ReuseContext {
        let category = job.plan.category ?? found.first.flatMap { self.category(named: $0.response.category) }
        return ReuseContext(
            policy: job.plan.policy, strategy: job.plan.strategy, offlineWindow: category?.offlineWindow ?? .forever,
            isReachable: job.isReachable, hasBody: job.exchange.body != nil, cachesByBody: false)
    }

    func category(named name: String) -> Category? { configuration.categories.first { $0.name == name } }

    // MARK: from the store

    /// The reply from a stored entry; nil when its body has gone.
    private func serve(
        _ entry: CacheEntry, _ freshness: Freshness, _ job: Job, _ trace: inout Trace, status: CacheStatus? = nil
    ) async -> Reply? {
        guard let body = await body(of: entry, job) else { return nil }
        cache.use(entry)
        trace.cacheStatus = status ?? CacheStatus(hit: true, ttl: freshness.remaining.seconds)
        var head = entry.response.head
        var replyBody = body
        if case .notModified(let notModified) = Preconditions.evaluate(request: job.request, stored: head) {
            (head, replyBody) = (notModified, .none(length: nil))
        }
        head.fields[.age] = String(max(0, freshness.age.seconds))
        return Reply(head: head, body: replyBody, trace: trace)
    }

    private func body(of entry: CacheEntry, _ job: Job) async -> ReplyBody? {
        if job.request.method == .head { return .some(.none(length: entry.response.bodyLength)) }
        do {
            switch try await cache.body(of: entry) {
            case .bytes(let bytes): return .bytes(bytes)
            case .file(let path, let length, let lease): return .file(path: path, length: length, lease: lease)
            case nil: return nil
            }
        } catch {
            logger.failed("cache body unreadable", error)
            return nil
        }
    }

    private func serveStale(
        _ entry: CacheEntry, _ freshness: Freshness, _ reason: Reuse.StaleReason, _ job: Job, _ context: ReuseContext,
        _ trace: inout Trace
    ) async -> Reply {
        let status = CacheStatus(hit: true, ttl: freshness.remaining.seconds, detail: reason.detail)
        guard let reply = await serve(entry, freshness, job, &trace, status: status) else {
            return await fetchNew(job, .uriMiss, [], context, &trace)
        }
        switch reason {
        case .offline: noteFailure(.notTried(.offline, lastFailure(job.plan.upstream)), job, &trace)
        case .staleWhileRevalidate where !job.isReachable: noteFailure(.notTried(.offline, lastFailure(job.plan.upstream)), job, &trace)
        case .staleWhileRevalidate(refreshBehind: true): refresh(job)
        default: break
        }
        return reply
    }

    /// Asks again behind the client's back, so that the next read is fresh (RFC 5861 §3).
    private func refresh(_ job: Job) {
        var job = job
        job.exchange.request.method = .get
        job.exchange.interim = { _ in }
        job.exchange.request.fields[.cacheControl] = "no-cache"
        for name in [HTTPField.Name.ifNoneMatch, .ifModifiedSince, .ifRange, .range] { job.exchange.request.fields[name] = nil }
        let behind = job
        Task {
            var trace = Trace(method: "GET", url: behind.request.url, startedAt: now())
            let plan = RoutePlan(
                upstream: behind.plan.upstream, route: behind.plan.route, entity: behind.plan.entity, category: behind.plan.category,
                strategy: .networkFirst, policy: behind.plan.policy, store: behind.plan.store)
            let reply = await read(
                Job(
                    exchange: behind.exchange, plan: plan, identity: behind.identity, permission: behind.permission,
                    wishes: behind.wishes), &trace)
            if case .stream(let source, _) = reply.body { try? await source.drain() }
        }
    }

    // MARK: from the upstream

    private func validate(
        _ found: [CacheEntry], _ index: Int, _ freshness: Freshness, _ conditionals: HTTPFields, _ reason: Reuse.ValidationReason,
        _ job: Job, _ context: ReuseContext, _ trace: inout Trace
    ) async -> Reply {
        var head = job.request
        for name in [HTTPField.Name.ifNoneMatch, .ifModifiedSince, .ifRange, .range] { head.fields[name] = nil }
        for field in conditionals { head.fields.append(field) }
        let sentAt = now()
        do {
            let answer = try await fetch(head, .none, for: job, &trace)
            if answer.head.status == 304 {
                try? await answer.body.drain()
                return await revalidated(found, index, answer.head, sentAt, reason, job, context, &trace)
            }
            if answer.head.status >= 500,
                let stale = await standIn(found[index], freshness, .status(answer.head.status), job, context, &trace)
            {
                answer.body.abandon()
                return stale
            }
            trace.verdict = .miss
            return await store(answer, sentAt, job, CacheStatus(hit: false, fwd: reason.forward), &trace)
        } catch {
            if let stale = await standIn(found[index], freshness, error.asUpstreamFailure, job, context, &trace, failure: error) {
                return stale
            }
            trace.cacheStatus = CacheStatus(hit: false, fwd: reason.forward, detail: "unreachable")
            return unanswered(error, job, &trace, offlineMiss: true)
        }
    }

    private func revalidated(
        _ found: [CacheEntry], _ index: Int, _ notModified: ResponseHead, _ sentAt: Timestamp, _ reason: Reuse.ValidationReason, _ job: Job,
        _ context: ReuseContext, _ trace: inout Trace
    ) async -> Reply {
        // A 304 without validators is about what was asked.
        let isAboutAsked = Revalidation.selects(found[index].response, notModified: notModified)
        let selected = isAboutAsked ? index : found.firstIndex { Revalidation.selects($0.response, notModified: notModified) } ?? index
        let freshened = Revalidation.freshened(
            found[selected].response, by: notModified, request: job.request, requestTime: sentAt, responseTime: now())
        var entry = found[selected]
        await keep(freshened, of: entry, job)
        entry.response = freshened
        trace.verdict = .revalidated
        let status = CacheStatus(hit: false, fwd: reason.forward, fwdStatus: 304)
        let reply = await serve(entry, .of(freshened, now: now()), job, &trace, status: status)
        return if let reply { reply } else { await fetchNew(job, .uriMiss, [], context, &trace) }
    }

    /// The freshened entry in the store's place of the old one, unless its new head says that it may not be kept.
    private func keep(_ freshened: StoredResponse, of entry: CacheEntry, _ job: Job) async {
        let partition: StoragePartition = entry.key.identity.isEmpty ? .shared : .identity(entry.key.identity)
        do {
            if Revalidation.mayStay(freshened, in: partition, rule: job.plan.store) {
                var freshened = freshened
                freshened.isInvalidated = partition == .anonymous
                try await cache.freshen(entry, as: freshened)
            } else {
                _ = try await cache.invalidate(urls: [entry.key.url])
            }
        } catch {
            logger.failed("cache freshen failed", error)
        }
    }

    /// A stored response in the place of an answer that failed, where that is allowed (RFC 5861 §4, design §5).
    private func standIn(
        _ entry: CacheEntry, _ freshness: Freshness, _ failure: UpstreamFailure, _ job: Job, _ context: ReuseContext,
        _ trace: inout Trace, failure transfer: TransferFailure? = nil
    ) async -> Reply? {
        guard StaleOnError.permits(entry.response, request: job.request, failure: failure, context: context, now: now()) else { return nil }
        let status = CacheStatus(hit: true, ttl: freshness.remaining.seconds, detail: transfer == nil ? "stale-if-error" : "offline")
        guard let reply = await serve(entry, freshness, job, &trace, status: status) else { return nil }
        trace.verdict = .stale
        if let transfer {
            noteFailure(transfer, job, &trace)
        } else {
            trace.proxyStatus = ProxyStatus(error: .destinationUnavailable, nextHop: job.request.origin.hostAndPort)
        }
        return reply
    }

    private func fetchNew(
        _ job: Job, _ forward: CacheStatus.Forward, _ found: [CacheEntry], _ context: ReuseContext, _ trace: inout Trace
    ) async -> Reply {
        let sentAt = now()
        trace.verdict = forward == .bypass || forward == .method ? .pass : .miss
        let body: OutboundRequest.Body = job.exchange.body.map { .stream($0, length: job.exchange.bodyLength) } ?? .none
        do {
            let answer = try await fetch(job.request, body, for: job, &trace)
            return await store(answer, sentAt, job, CacheStatus(hit: false, fwd: forward), &trace)
        } catch {
            trace.cacheStatus = CacheStatus(hit: false, fwd: forward, detail: error.sent == .no ? "unreachable" : nil)
            return unanswered(error, job, &trace, offlineMiss: true)
        }
    }
}

extension Reuse {
    /// The decision in a word, for the trace.
    fileprivate var name: String {
        switch self {
        case .fresh: "fresh"
        case .stale(_, _, let reason): "stale (\(reason.detail))"
        case .validate(_, _, _, let reason): "validate (\(reason.rawValue))"
        case .none(let reason), .gatewayTimeout(let reason): reason.rawValue
        }
    }
}

extension TransferFailure {
    /// As the rules for stale responses see it.
    fileprivate var asUpstreamFailure: UpstreamFailure { kind == .tls || kind == .denied ? .untrusted : .unreachable }
}

extension BodySource {
    /// Reads to the end and drops it.
    package func drain() async throws(TransferFailure) {
        while try await next() != nil {}
    }
}
