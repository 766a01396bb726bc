// Requests that share the fetch of another request, whole or for a range (RFC 9111 §4, RFC 9110 §14.2; docs/caching.md#coalesced-fetches).
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
        case .validated(let entry, _, _):
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
        if let stale = await storedReplies.standIn(for: failure, to: &context, forwarding: forwarding) { return stale }
        if let asked = await storedReplies.challenge(of: spaces, after: failure, to: &context) { return asked }
        let isUnreachable = failure.sent == .no || forwarding.selected != nil
        context.trace.cacheStatus = CacheStatus(hit: false, fwd: forwarding.reason, detail: isUnreachable ? "unreachable" : nil)
        return context.unanswered(failure, offlineMiss: true, isValidation: forwarding.selected != nil)
    }
}
