// Answers reads: looks up, decides, serves or fetches, and stores (RFC 9111 §4, §4.3; docs/architecture.md#journeys).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore

/// The read pipeline: the order of its steps, and the fetch that requests of the same key share. Its parts are the properties.
package final class ReadPipeline: Sendable {
    /// Finds the stored entries of a request and decides about their reuse.
    let lookup: EntryLookup
    /// Makes replies from stored entries.
    let storedReplies: StoredReplies
    /// Changes stored entries after a 304, a response to HEAD, or a write.
    let updates: EntryUpdates
    /// Stores responses.
    let responses: ResponseStore
    /// Keeps challenges.
    let spaces: ProtectionSpaces
    /// Keeps the accepted signatures of presigned URLs.
    let presigned: PresignedReads
    let portal: PortalCheck
    /// Fetches in progress; one fetch serves all clients that request the same.
    let inFlight = InFlightFetches()
    /// Transfers under way, as parts of the bodies that requests are answered with.
    let running = RunningParts()
    let credentials: Credentials
    let upstreams: UpstreamClient
    let renewal: CredentialRenewal
    /// The configuration in force.
    let active: ActiveConfiguration
    /// The largest complete body that is fetched after a HEAD or a range request.
    let cheapWhole: ByteCount
    let now: @Sendable () -> Timestamp

    init(
        cache: CacheStore, data: DataStore, reachability: ReachabilityTable, credentials: Credentials, upstreams: UpstreamClient,
        renewal: CredentialRenewal, active: ActiveConfiguration, learning: ResourceLearning, logger: Logger, cheapWhole: ByteCount,
        now: @escaping @Sendable () -> Timestamp
    ) {
        (self.credentials, self.upstreams, self.renewal, self.active) = (credentials, upstreams, renewal, active)
        (self.cheapWhole, self.now) = (cheapWhole, now)
        lookup = EntryLookup(cache: cache, data: data, logger: logger, now: now)
        portal = PortalCheck(reachability: reachability, upstreams: upstreams, now: now)
        storedReplies = StoredReplies(cache: cache, lookup: lookup, portal: portal, upstreams: upstreams, logger: logger, now: now)
        presigned = PresignedReads(cache: cache, logger: logger, now: now)
        spaces = ProtectionSpaces(cache: cache, active: active, logger: logger, now: now)
        updates = EntryUpdates(
            cache: cache, lookup: lookup, active: active, news: StaleNews(data: data, logger: logger), logger: logger, now: now)
        responses = ResponseStore(
            cache: cache, lookup: lookup, portal: portal, active: active, learning: learning, logger: logger, now: now)
    }

    // MARK: - The stored response

    /// Answers a read with the server's state, without queued writes.
    func readServerState(_ context: inout RequestContext) async -> Reply {
        // Another fetch may finish during lookup; then the store is read again. 10 lookups suffice for a few variants that finish together.
        var lookups = 0
        while true {
            lookups += 1
            let epoch = inFlight.epoch(of: context.fetchBase)
            let (found, rules) = await candidates(for: &context)
            var decision = lookup.reuse(of: found, for: context.request, rules: rules, now: now())
            if decision.mayWait, rules.isReachable, upstreams.budgets.isSpent(for: context, now: now()) {
                let absent = lookup.reuse(of: found, for: context.request, rules: rules.withoutUpstream, now: now())
                decision = decision.orStale(absent)
            }
            context.trace.record(.decided("\(decision.word) (\(decision.reason))"))
            let forwarding = Forwarding(found: found, rules: rules, reason: .uriMiss, epoch: lookups < 10 ? epoch : nil)
            if let reply = await reply(to: decision, for: &context, by: forwarding) { return reply }
        }
    }

    /// The stored responses that the request may read now, and the rules of their use.
    func candidates(for context: inout RequestContext) async -> ([CacheEntry], ReuseContext) {
        let readable = lookup.ownFirst(await lookup.entries(for: context), identity: context.identity, plan: context.plan)
        context.trace.record(.looked(candidates: readable.count))
        return await presigned.judged(readable, by: reuseContext(for: context, found: readable), for: context)
    }

    func reuseContext(for context: RequestContext, found: [CacheEntry]) -> ReuseContext {
        ReuseContext(
            policy: context.plan.policy, strategy: context.plan.strategy,
            offlineWindow: active.offlineWindow(of: context.plan, for: found.first?.response),
            isReachable: context.isReachable && !portal.isDoubted(plan: context.plan),
            staleOnError: active.configuration.staleOnError(of: context.plan), hasBody: context.exchange.body != nil,
            cachesByBody: context.bodyDigest != nil, isByAuthorization: context.identity.isByAuthorization)
    }

    /// Returns the reply for the decision; nil if the store must be read again.
    private func reply(to decision: Reuse, for context: inout RequestContext, by initial: Forwarding) async -> Reply? {
        var forwarding = initial
        switch decision {
        case .fresh(let index, let freshness):
            context.trace.verdict = .hit
            if let hit = await storedReplies.serve(forwarding.found[index], freshness: freshness, for: &context) { return hit }
        case .stale(let index, let freshness, let reason):
            context.trace.verdict = .stale
            let entry = forwarding.found[index]
            if let stale = await storedReplies.serveStale(entry, freshness: freshness, reason: reason, for: &context) {
                if reason == .staleWhileRevalidate(refreshBehind: true), context.isReachable { refresh(entry, for: context) }
                return stale
            }
        case .validate(let index, _, let conditionals, let reason):
            forwarding.selected = index
            forwarding.conditionals = conditionals
            forwarding.reason = reason.forward
        case .complete(let index, let fields):
            forwarding.reason = .partial
            forwarding.claim = claim(restOf: forwarding.found[index])
            // Another request fetches bytes of the representation: what is stored and what it brings is put together.
            guard forwarding.claim != nil else { break }
            forwarding.selected = index
            forwarding.conditionals = fields
            forwarding.completes = true
        case .none(let reason): forwarding.reason = reason.forward
        case .gatewayTimeout(let reason):
            context.trace.verdict = .failed
            context.trace.cacheStatus = CacheStatus(hit: false, fwd: reason.forward, detail: reason.rawValue)
            return Reply(Problem(.onlyIfCached, detail: "nothing stored can answer this request (\(reason.rawValue))"), context.trace)
        }
        if let whole = withoutConditions(from: context, by: forwarding) {
            return await fetchUnconditional(whole, for: &context, by: forwarding)
        }
        return await fetchCoalesced(for: &context, by: forwarding)
    }

    // MARK: - One fetch for requests of the same key

    /// Returns the reply from the upstream, or from a running fetch of the same key; nil if the store must be read again.
    func fetchCoalesced(for context: inout RequestContext, by forwarding: Forwarding) async -> Reply? {
        // Each signature is judged by the upstream.
        if context.presigned != nil { return await fetchAlone(for: &context, by: forwarding) }
        // A revalidation is sent without the client's conditions, so its response suits every waiting request.
        let sent = forwarding.selected == nil ? context.request : context.request.unconditional
        let (hasBody, wishes) = (context.exchange.body != nil, CacheControl(request: sent.fields))
        if let obstacle = RequestCollapsing.obstacleToLeading(sent, hasBody: hasBody, wishes: wishes) {
            guard obstacle == .range || obstacle == .condition else { return await fetchAlone(for: &context, by: forwarding) }
            if let reply = await readAlong(for: &context, by: forwarding) { return reply }
            return await fetchRange(for: &context, by: forwarding)
        }
        var key = context.fetchKey(varyingBy: forwarding.varyNames)
        if let fetch = (context.exchange.early?.subject as? any FetchLead)?.takeLead(of: key) {
            return await lead(fetch, key: key, for: &context, by: forwarding)
        }
        if let reply = await assembled(for: &context, by: forwarding) { return reply }
        let mayFollow = RequestCollapsing.obstacleToFollowing(sent, hasBody: hasBody, wishes: wishes) == nil
        // Each iteration knows more of the fields by which the responses vary.
        for _ in 0..<4 {
            switch inFlight.join(at: key, since: forwarding.epoch, mayFollow: mayFollow, now: updates.cache.moment()) {
            case .lookAgain: return nil
            case .alone: return await fetchAlone(for: &context, by: forwarding)
            case .lead(let fetch): return await lead(fetch, key: key, for: &context, by: forwarding)
            // Its response may show the state before a write that was answered since.
            case .follow(let fetch) where updates.cache.wasInvalidated(key.base, groups: [], since: fetch.startedAt):
                return await fetchAlone(for: &context, by: forwarding)
            case .follow where context.isBehind:
                return Reply(head: ResponseHead(status: 204), body: .none(length: nil), trace: context.trace)
            case .follow(let fetch):
                switch await follow(fetch, for: &context, by: forwarding) {
                case .reply(let reply): return reply
                case .lookAgain where forwarding.epoch != nil: return nil
                case .varies(let names) where context.fetchKey(varyingBy: names) != key: key = context.fetchKey(varyingBy: names)
                case .lookAgain, .varies, .released: return await fetchAlone(for: &context, by: forwarding)
                }
            }
        }
        return await fetchAlone(for: &context, by: forwarding)
    }

    func fetchAlone(for context: inout RequestContext, by forwarding: Forwarding) async -> Reply {
        context.trace.includes = updates.cache.ticks.next()
        return await reply(to: await fetchOrRevalidate(for: &context, by: forwarding), for: &context, by: forwarding)
    }

    private func lead(
        _ fetch: CoalescedFetch, key: FetchKey, for context: inout RequestContext, by forwarding: Forwarding
    ) async -> Reply {
        context.trace.includes = updates.cache.ticks.next()
        let started = context
        fetch.start(on: context.exchange.executor) {
            var leading = started
            let outcome = await self.fetchOrRevalidate(for: &leading, by: forwarding, leading: key)
            return FetchReport(outcome: outcome, steps: leading.trace.entries.dropFirst(started.trace.entries.count))
        }
        guard let report = await fetch.ledReport() else { return context.unanswered(.cancelled, offlineMiss: false) }
        for step in report.steps { context.trace.append(step) }
        return await reply(to: report.outcome, for: &context, by: forwarding)
    }

    // MARK: - Upstream

    /// Sends the read upstream, with the conditions of a revalidation in place of the client's, and applies the response: updates stored
    /// entries and decides about storage (RFC 9111 §3.4, §4.3).
    /// - Parameter key: The key of the coalesced fetch that this request leads; the fetch leaves the table when storing has ended.
    func fetchOrRevalidate(
        for context: inout RequestContext, by forwarding: Forwarding, leading key: FetchKey? = nil
    ) async -> FetchOutcome {
        let sentAt = context.exchange.early?.answeredSince ?? updates.cache.moment()
        defer { forwarding.claim?.release() }
        let part = (number: running.number(), base: context.fetchBase)
        let end: @Sendable () -> Void = { [inFlight, running] in
            if let key { inFlight.leave(key: key) } else { inFlight.touch(part.base) }
            running.remove(part.number)
        }
        do {
            var head = forwarding.head(of: context.request)
            if context.plan.entity?.resource != nil { head.acceptDecodable() }
            let received = try await fetch(
                head, body: context.outboundBody, for: &context, stored: forwarding.found.map(\.response))
            let status = received.head.status
            if status == 304, forwarding.selected != nil, !forwarding.completes {
                try? await received.body.drain()
                if let copy = await updates.freshened(by: received.head, sentAt: sentAt, for: context, forwarding: forwarding) {
                    presigned.keep(received.head, sentAt: sentAt, for: context)
                    end()
                    return .validated(copy, by: received.request)
                }
                // The 304 matches no stored entry, so the whole is requested.
                return await fetchOrRevalidate(for: &context, by: forwarding.anew, leading: key)
            }
            if forwarding.completes, status == 206 || status == 416 {
                if var completed = await responses.completed(forwarding.entry, by: received, sentAt: sentAt, for: context, onEnd: end) {
                    context.trace.record(.stored)
                    register(completed, as: part.number, for: context, by: forwarding)
                    completed.fetchedStatus = 206
                    return .answered(completed)
                }
                // The stored beginning and the received rest do not fit together, so the whole is requested.
                received.body.abandon()
                return await fetchOrRevalidate(for: &context, by: forwarding.anew, leading: key)
            }
            if context.request.method == .head {
                await updates.apply(head: received, sentAt: sentAt, for: context, forwarding: forwarding)
            }
            // The response may have proved the identity: it is stored in the partition where later lookups find it.
            var proved = context
            proved.identity = credentials.current(context.identity)
            var fetched = await responses.store(received, sentAt: sentAt, among: forwarding.found, for: &proved, onEnd: end)
            if !fetched.isSuspect,
                responses.keepHead(received.head, length: received.length, sentAt: sentAt, for: proved, found: forwarding.found)
            {
                fetched.isLastingRefusal = false
            }
            if !fetched.isSuspect {
                spaces.keep(received.head, sentAt: sentAt, for: context)
                presigned.keep(received.head, sentAt: sentAt, for: context)
            }
            context.trace = proved.trace
            register(fetched, as: part.number, for: proved, by: forwarding)
            if !fetched.isSuspect { fetchWhole(after: received.head, length: received.length, for: context, by: forwarding) }
            if fetched.stored == nil {
                if key != nil, fetched.isLastingRefusal { inFlight.note(uncollapsible: context.fetchBase, now: now()) }
                end()
            }
            return .answered(fetched)
        } catch {
            end()
            return .failed(error)
        }
    }

    /// Sends `head` upstream if reachability permits, and records the outcome in the trace of `context`. Reads and writes use it.
    ///
    /// - Parameter stored: Stored responses of the key, as examples of the upstream's own responses.
    ///
    /// Throws `TransferFailure`, with `sent: no` if the request was not attempted because the upstream is known to be unreachable.
    func fetch(
        _ head: RequestHead, body: OutboundRequest.Body, for context: inout RequestContext, stored: [StoredResponse] = [],
        freshConnection: Bool = false
    ) async throws(TransferFailure) -> OriginReply {
        do throws(TransferFailure) {
            if case .no(let reason) = context.permission { throw .notTried(reason, upstreams.lastFailure(context.plan.upstream)) }
            let upstream = context.plan.upstream
            let first = try await upstreams.send(
                context.exchange.signing(context.exchange.forwarding(head), at: now()), body: body, upstream: upstream,
                allowsLoopback: upstream?.allowsLoopback == true || context.exchange.isLocalClient,
                freshConnection: freshConnection || context.exchange.needsFreshConnection, mayShare: context.mayShare(head),
                route: context.plan.route, early: context.exchange.early, account: context.isBehind ? nil : context.exchange.account,
                forClient: !context.isBehind, loop: context.exchange.loop,
                interim: context.exchange.interim,
                isOwn: { self.portal.isOwn($0, to: context, stored: stored) })
            let reply = try await contentBehind(first, to: head, for: context)
            context.trace.record(.fetched(status: reply.head.status), transfer: reply.clock)
            await renewal.heed(
                first.head, to: context.request, hasBody: context.exchange.body != nil, by: context.identity, at: context.plan.upstream)
            let learned = await renewal.learning(from: reply, to: context)
            guard !context.plan.isWrite, context.plan.route?.kind == .graphql else { return learned }
            return await examined(learned, for: &context)
        } catch {
            context.trace.record(.failed(error))
            throw error
        }
    }

    // MARK: - The reply

    /// Returns the reply to the client that has caused the fetch.
    func reply(to outcome: FetchOutcome, for context: inout RequestContext, by forwarding: Forwarding) async -> Reply {
        switch outcome {
        case .validated(let copy, let request):
            context.trace.verdict = .revalidated
            let status = CacheStatus(hit: false, fwd: forwarding.reason, fwdStatus: 304)
            let freshness = Freshness.of(copy.entry.response, now: now())
            var served = await storedReplies.serve(copy.entry, freshness: freshness, for: &context, status: status)
            // Another request may have stored the same representation anew.
            if served == nil, let same = copy.withBody(ofAny: await lookup.entries(for: context)) {
                served = await storedReplies.serve(same.entry, freshness: freshness, for: &context, status: status)
            }
            // If the stored body is gone, the whole is fetched.
            var reply = if let served { served } else { await fetchAlone(for: &context, by: forwarding.anew) }
            if served != nil { reply.passed = PassedRead(request, in: context, to: nil) }
            copy.complete(&reply.head)
            return reply
        case .answered(let fetched):
            if let stale = await storedReplies.standIn(for: fetched, to: &context, forwarding: forwarding) { return stale }
            context.trace.verdict = forwarding.reason == .bypass || forwarding.reason == .method ? .pass : .miss
            context.trace.cacheStatus = CacheStatus(
                hit: false, fwd: forwarding.reason, fwdStatus: fetched.fetchedStatus, stored: fetched.stored != nil, detail: fetched.detail)
            if forwarding.selected != nil, let (head, body) = fetched.part(for: context.request) {
                return Reply(head: head, body: body, trace: context.trace)
            }
            var reply = Reply(head: fetched.head, body: fetched.bodyForRequester(in: context), trace: context.trace)
            if forwarding.found.isEmpty { reply.passed = fetched.passed(in: context) }
            return reply
        case .failed(let failure): return await reply(after: failure, for: &context, by: forwarding)
        }
    }
}
