// Fetches that are not one client's alone: shared with the fetch of another request, whole or for a range (RFC 9111 §4, RFC 9110 §14.2;
// docs/caching.md#coalesced-fetches), of the whole in place of a conditional request, and behind a reply that was sent (RFC 5861 §3).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

extension ReadPipeline {
    /// The result of waiting for another request's fetch.
    enum Followed {
        case reply(Reply)
        /// The store has changed; read it again.
        case lookAgain
        /// The response is one of several variants; these request fields select among them.
        case varies([HTTPField.Name])
        /// The response may be used by the leader only.
        case released
    }

    /// Waits for the head of a running fetch, and returns the reply from its response if the rules allow this request to use it.
    func follow(_ fetch: CoalescedFetch, for context: inout RequestContext, by forwarding: Forwarding) async -> Followed {
        guard let report = await fetch.report() else {
            return .reply(context.unanswered(.cancelled, offlineMiss: false))
        }
        switch report.outcome {
        case .validated(let copy, _):
            let entry = copy.entry
            // An entry that must be validated for each request cannot be shared. The key is recorded, so that later requests do not wait in
            // vain.
            switch lookup.reuse(of: [entry.response], for: context.request, rules: forwarding.rules, now: now()) {
            case .fresh, .stale:
                // A copy from a client without a credential is revalidated for each request.
                let isDoubted = lookup.ownFirst([entry], identity: context.identity, plan: context.plan)
                    .contains(where: \.response.isInvalidated)
                return isDoubted ? .released : .lookAgain
            case .validate, .complete, .none, .gatewayTimeout:
                inFlight.note(uncollapsible: context.fetchBase, now: now())
                return .released
            }
        case .failed(let failure) where failure.kind == .cancelled: return .lookAgain
        case .failed(let failure): return .reply(await reply(after: failure, for: &context, by: forwarding))
        case .answered(let fetched): return share(fetched, for: &context, by: forwarding)
        }
    }

    /// Shares the leader's response while it arrives, if the rules allow this request to use it.
    private func share(_ fetched: FetchedResponse, for context: inout RequestContext, by forwarding: Forwarding) -> Followed {
        switch RequestCollapsing.outcome(of: fetched.arrival, for: context.request, identity: context.identity.partition, now: now()) {
        case .release(.vary): return .varies(fetched.stored?.validity.varyNames ?? [])
        case .release(let reason):
            if reason.isLasting { inFlight.note(uncollapsible: context.fetchBase, now: now()) }
            return .released
        case .share: break
        }
        guard let copy = fetched.copy,
            copy.response.head.searchVariance(plan: context.plan).normalized(target: context.request.target) == copy.key.target
        else {
            return .released
        }
        guard case .shared(let body) = fetched.body, let reader = body.reader() else { return .lookAgain }
        let stored = copy.response
        let (head, content): (ResponseHead, ReplyBody) =
            if case .notModified(let notModified) = Preconditions.evaluate(request: context.request, stored: stored.head) {
                (notModified, .none(length: nil))
            } else {
                fetched.part(for: context.request) ?? (stored.head, .stream(reader, length: fetched.length))
            }
        return .reply(collapsed(head, body: content, of: stored, for: &context, by: forwarding))
    }

    /// Returns the range from the running fetch as it arrives; nil if there is no such fetch, its response cannot be shared with this
    /// request, or the range is so far ahead that a separate request is better.
    func readAlong(for context: inout RequestContext, by forwarding: Forwarding) async -> Reply? {
        let request = context.request
        var whole = request
        for name in [HTTPField.Name.range, .ifRange] { whole.fields[name] = nil }
        let mayFollow = RequestCollapsing.obstacleToFollowing(whole, hasBody: false, wishes: CacheControl(request: request.fields)) == nil
        guard mayFollow, let fetch = inFlight.underWay(at: context.fetchKey(varyingBy: forwarding.varyNames)),
            let report = await fetch.report(), case .answered(let fetched) = report.outcome, let stored = fetched.stored,
            case .shared(let body) = fetched.body, let length = fetched.length, length > 0, stored.part == nil,
            case .share = RequestCollapsing.outcome(of: fetched.arrival, for: request, identity: context.identity.partition, now: now())
        else { return nil }
        let elapsed = now() - stored.responseTime
        let content: (head: ResponseHead, body: ReplyBody)
        switch RangeReply.decide(request: request, stored: stored.head, bodyLength: length, boundary: Multipart.boundary()) {
        case .part(let head, let range):
            let mayBeCut = stored.supportsRanges && Representation(of: stored.head, length: length) != nil
            let isSoon =
                mayBeCut
                ? !RequestCollapsing.isWorthCutting(before: range.lowerBound, received: body.received, in: elapsed)
                : RequestCollapsing.isWorthAwaiting(range.lowerBound, received: body.received, in: elapsed)
            guard isSoon, let reader = body.reader(from: range.lowerBound)
            else { return nil }
            content = (head, .stream(BodySlice(reader, length: Int64(range.count)), length: Int64(range.count)))
        case .whole:
            guard let reader = body.reader() else { return nil }
            content = (stored.head, .stream(reader, length: length))
        case .unsatisfiable(let head): content = (head, .bytes(ByteBuffer()))
        case .parts, nil: return nil
        }
        return collapsed(content.head, body: content.body, of: stored, for: &context, by: forwarding)
    }

    /// Returns the reply to a request that shares another request's fetch.
    private func collapsed(
        _ head: ResponseHead, body: ReplyBody, of stored: StoredResponse, for context: inout RequestContext, by forwarding: Forwarding
    ) -> Reply {
        context.trace.verdict = .collapsed
        context.trace.includes = stored.asked
        context.trace.cacheStatus = CacheStatus(hit: false, fwd: forwarding.reason, collapsed: true)
        var head = head
        head.fields[.age] = String(max(0, Freshness.of(stored, now: now()).age.seconds))
        return Reply(head: head, body: body, trace: context.trace)
    }

    /// Returns a stored response or an error reply after a fetch without a response, to the leader and to each follower.
    func reply(after failure: TransferFailure, for context: inout RequestContext, by forwarding: Forwarding) async -> Reply {
        // While the upstream was asked, a write of this client may have put another copy in the place of the one that was found.
        let (found, rules) = await candidates(for: &context)
        let present = Forwarding(found: found, rules: rules, reason: forwarding.reason, epoch: nil)
        for forwarding in [present, forwarding] {
            if let stale = await storedReplies.standIn(for: failure, to: &context, forwarding: forwarding) { return stale }
        }
        if let asked = await storedReplies.challenge(of: spaces, after: failure, to: &context) { return asked }
        let isUnreachable = failure.sent == .no || forwarding.selected != nil
        context.trace.cacheStatus = CacheStatus(hit: false, fwd: forwarding.reason, detail: isUnreachable ? "unreachable" : nil)
        return context.unanswered(failure, offlineMiss: true, isValidation: forwarding.selected != nil)
    }

    // MARK: - Conditional requests without a stored entry

    /// Returns the request without its conditions if its response may be stored and no entry is selected; nil otherwise.
    ///
    /// A client with its own cache, such as any browser, would otherwise always receive a 304, and nothing would be stored for offline use.
    func withoutConditions(from context: RequestContext, by forwarding: Forwarding) -> RequestContext? {
        let fields = context.request.fields
        guard forwarding.selected == nil, context.request.method == .get, context.exchange.body == nil,
            context.plan.strategy != .networkOnly,
            fields.contains(.ifNoneMatch) || fields.contains(.ifModifiedSince),
            ![HTTPField.Name.range, .ifRange, .ifMatch, .ifUnmodifiedSince].contains(where: fields.contains),
            !CacheControl(request: fields).noStore, !inFlight.isUncollapsible(at: context.fetchBase, now: now())
        else { return nil }
        var whole = context
        whole.exchange.request = context.request.unconditional
        return whole
    }

    /// Answers the request of `context` by the same request without conditions; nil if the store must be read again.
    func fetchUnconditional(_ whole: RequestContext, for context: inout RequestContext, by forwarding: Forwarding) async -> Reply? {
        var whole = whole
        let fetched = await fetchCoalesced(for: &whole, by: forwarding)
        context.trace = whole.trace
        guard let reply = fetched else { return nil }
        guard case .notModified(let head) = Preconditions.evaluate(request: context.request, stored: reply.head) else { return reply }
        if case .stream(let source, _) = reply.body {
            // A body that is being stored is read to its end; any other is abandoned.
            if reply.trace.cacheStatus?.stored == true { Task { try? await source.drain() } } else { source.abandon() }
        }
        return Reply(head: head, body: .none(length: nil), trace: reply.trace)
    }

    // MARK: - Fetches for which no client waits (docs/caching.md#ranges)

    /// Revalidates the entry in the background, so that the next read is fresh (RFC 5861 §3). At most one refresh per key runs at a time.
    func refresh(_ entry: CacheEntry, for context: RequestContext) {
        if upstreams.budgets.wait(for: .refresh, with: context.identity.secrets, at: context.plan.upstream, now: now()) != nil { return }
        // On a slow connection a large body would delay requests that clients wait for (docs/caching.md#bandwidth).
        if entry.response.bodyLength >= Bandwidth.leastBytes.bytes, upstreams.isNarrow(context.plan.upstream) { return }
        fetchBehind(context, varyingBy: entry.response.validity.varyNames ?? [])
    }

    /// Sends the same read as Rockpool's own request in the background. At most one per key runs at a time.
    private func fetchBehind(_ context: RequestContext, varyingBy names: [HTTPField.Name] = []) {
        let key = context.fetchKey(varyingBy: names)
        guard inFlight.beginRefresh(of: key) else { return }
        let behind = context.behind(at: now())
        Task {
            defer { inFlight.endRefresh(of: key) }
            var behind = behind
            let reply = await readServerState(&behind)
            if case .stream(let source, _) = reply.body { try? await source.drain() }
        }
    }

    /// Fetches the whole in the background after a HEAD or a range request, if nothing is stored and the whole may be stored, is small and
    /// has a validator. An origin without validators may have produced the response for this request alone.
    ///
    /// Otherwise clients that send HEAD first, or read in ranges, would find nothing stored while the upstream is unreachable.
    func fetchWhole(after head: ResponseHead, length: Int64?, for context: RequestContext, by forwarding: Forwarding) {
        guard context.plan.policy == .offlineFirst, forwarding.found.allSatisfy(\.response.isHeadOnly), !context.isBehind,
            context.exchange.body == nil,
            // A signature covers the method, and may cover the range.
            context.identity.signature.isEmpty && context.presigned == nil || context.exchange.signer != nil,
            context.request.method == .head || context.request.fields.contains(.range), !portal.isDoubted(plan: context.plan),
            head.hasValidator, let whole = whole(of: head, length: length)
        else { return }
        let category = context.plan.category ?? active.category(named: CategoryGuess.name(for: whole.head)) ?? .ephemeral
        let limit = min(category.maxObject?.bytes ?? .max, cheapWhole.bytes)
        let isLargeForTheWay = whole.length >= Bandwidth.leastBytes.bytes && upstreams.isNarrow(context.plan.upstream)
        guard whole.length <= limit, !isLargeForTheWay,
            upstreams.budgets.wait(for: .refresh, with: context.identity.secrets, at: context.plan.upstream, now: now()) == nil,
            case .store = responses.storability(
                of: whole.head, for: context.behind(at: now()), among: [], receivedAt: now())
        else { return }
        fetchBehind(context)
    }

    /// Returns head and length of the whole if the response gives them, otherwise nil.
    private func whole(of head: ResponseHead, length: Int64?) -> (head: ResponseHead, length: Int64)? {
        switch head.status {
        case 200: return length.map { (head, $0) }
        case 206:
            guard case .part(_, of: let length?) = PartialResponse.part(of: head) else { return nil }
            return (PartialResponse.holding(0..<length, of: length, fields: head.fields), length)
        default: return nil
        }
    }
}
