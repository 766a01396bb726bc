// Forwards a read: one coalesced fetch for requests of the same key, and the reply of each request from its outcome (RFC 9111 §4, §4.3).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore

extension ReadPipeline {
    /// Returns the reply from the upstream, or from a running fetch of the same key; nil if the store must be read again.
    func forward(_ question: Forwarding, _ context: inout RequestContext) async -> Reply? {
        // A revalidation is sent without the client's conditions, so its response suits every waiting request.
        let asked = question.selected == nil ? context.request : context.request.unconditional
        let (hasBody, wishes) = (context.exchange.body != nil, CacheControl(request: asked.fields))
        if let obstacle = RequestCollapsing.obstacleToLeading(asked, hasBody: hasBody, wishes: wishes) {
            if obstacle == .range, let reply = await readAlong(question, &context) { return reply }
            return await fetchAlone(question, &context)
        }
        let mayFollow = RequestCollapsing.obstacleToFollowing(asked, hasBody: hasBody, wishes: wishes) == nil
        var key = context.fillKey(varyingBy: question.varyNames)
        // Each iteration knows more of the fields by which the responses vary.
        for _ in 0..<4 {
            switch fills.join(key, since: question.epoch, mayFollow: mayFollow, now: now()) {
            case .lookAgain: return nil
            case .alone: return await fetchAlone(question, &context)
            case .lead(let fill): return await lead(fill, key, question, &context)
            case .follow where context.isBehind:
                return Reply(head: ResponseHead(status: 204), body: .none(length: nil), trace: context.trace)
            case .follow(let fill):
                switch await follow(fill, question, &context) {
                case .reply(let reply): return reply
                case .lookAgain where question.epoch != nil: return nil
                case .varies(let names) where context.fillKey(varyingBy: names) != key: key = context.fillKey(varyingBy: names)
                case .lookAgain, .varies, .released: return await fetchAlone(question, &context)
                }
            }
        }
        return await fetchAlone(question, &context)
    }

    private func fetchAlone(_ question: Forwarding, _ context: inout RequestContext) async -> Reply {
        context.trace.fetchedAt = now()
        return await reply(to: await ask(question, &context), question, &context)
    }

    // MARK: leading

    private func lead(_ fill: CoalescedFetch, _ key: FillKey, _ question: Forwarding, _ context: inout RequestContext) async -> Reply {
        context.trace.fetchedAt = now()
        let started = context
        fill.start {
            var leading = started
            let outcome = await self.ask(question, &leading, leading: key)
            return FetchReport(outcome: outcome, steps: leading.trace.steps.dropFirst(started.trace.steps.count))
        }
        guard let report = await fill.ledReport() else { return unanswered(.cancelled, &context, offlineMiss: false) }
        for step in report.steps { context.trace.record(step) }
        return await reply(to: report.outcome, question, &context)
    }

    /// Returns the reply to the client that has caused the fetch.
    private func reply(to outcome: FetchOutcome, _ question: Forwarding, _ context: inout RequestContext) async -> Reply {
        switch outcome {
        case .validated(let entry, let own):
            var reply = await revalidated(entry, question, &context)
            for field in own { reply.head.fields.append(field) }
            return reply
        case .answered(let answer):
            if let stale = await standIn(for: answer, question, &context) { return stale }
            context.trace.verdict = question.forward == .bypass || question.forward == .method ? .pass : .miss
            context.trace.cacheStatus = CacheStatus(
                hit: false, fwd: question.forward, fwdStatus: answer.fetchedStatus, stored: answer.stored != nil, detail: answer.detail)
            if question.selected != nil, let (head, body) = part(of: answer, for: context) {
                return Reply(head: head, body: body, trace: context.trace)
            }
            return Reply(head: answer.head, body: answer.bodyForTheFirst(context), trace: context.trace)
        case .failed(let failure): return await failed(failure, question, &context)
        }
    }

    /// Cuts the requested range from a whole that was received instead, because a revalidation requests the whole (RFC 9110 §14.2).
    private func part(of answer: FetchedResponse, for context: RequestContext) -> (ResponseHead, ReplyBody)? {
        guard context.request.fields.contains(.range), let length = answer.length, case .shared(let body) = answer.body else { return nil }
        switch RangeReply.decide(request: context.request, stored: answer.head, bodyLength: length, boundary: Multipart.boundary()) {
        case .part(let head, let range):
            return body.reader(from: range.lowerBound).map { reader in
                (head, .stream(BodySlice(reader, length: Int64(range.count)), length: Int64(range.count)))
            }
        case .unsatisfiable(let head): return (head, .none(length: nil))
        case .whole, .parts, nil: return nil
        }
    }

    private func failed(_ failure: TransferFailure, _ question: Forwarding, _ context: inout RequestContext) async -> Reply {
        if let stale = await standIn(for: failure, question, &context) { return stale }
        let isUnreachable = failure.sent == .no || question.selected != nil
        context.trace.cacheStatus = CacheStatus(hit: false, fwd: question.forward, detail: isUnreachable ? "unreachable" : nil)
        return unanswered(failure, &context, offlineMiss: true, isValidation: question.selected != nil)
    }

    private func revalidated(_ entry: CacheEntry, _ question: Forwarding, _ context: inout RequestContext) async -> Reply {
        context.trace.verdict = .revalidated
        let status = CacheStatus(hit: false, fwd: question.forward, fwdStatus: 304)
        if let reply = await serve(entry, .of(entry.response, now: now()), &context, status: status) { return reply }
        // The stored body is gone, so the whole is fetched.
        return await fetchAlone(question.anew, &context)
    }

    // MARK: following

    private enum Followed {
        case reply(Reply)
        /// The store has changed; read it again.
        case lookAgain
        /// The response is one of several variants; these request fields select among them.
        case varies([HTTPField.Name])
        /// The response may be used by the leader only.
        case released
    }

    private func follow(_ fill: CoalescedFetch, _ question: Forwarding, _ context: inout RequestContext) async -> Followed {
        guard let report = await fill.report() else {
            return .reply(unanswered(.cancelled, &context, offlineMiss: false))
        }
        switch report.outcome {
        case .validated(let entry, _):
            // An entry that must be validated for each request cannot be shared. The key is recorded, so that later requests do not wait in
            // vain.
            let decision = reuse([entry.response], for: context.request, question.rules, now: now())
            switch decision {
            case .fresh, .stale:
                // A copy from a client without a credential is revalidated for each request.
                return ownFirst([entry], context.identity, context.plan).contains(where: \.response.isInvalidated) ? .released : .lookAgain
            case .validate, .complete, .none, .gatewayTimeout:
                fills.note(uncollapsible: context.fillKey().base, now: now())
                return .released
            }
        case .failed(let failure) where failure.kind == .cancelled: return .lookAgain
        case .failed(let failure): return .reply(await failed(failure, question, &context))
        case .answered(let answer): return follow(answer, question, &context)
        }
    }

    /// Shares the leader's response while it arrives, if the rules allow this request to use it.
    private func follow(_ answer: FetchedResponse, _ question: Forwarding, _ context: inout RequestContext) -> Followed {
        switch RequestCollapsing.outcome(of: answer.arrival, for: context.request, identity: context.identity.partition, now: now()) {
        case .release(.vary): return .varies(answer.stored?.validity.varyNames ?? [])
        case .release(let reason):
            if reason.isLasting { fills.note(uncollapsible: context.fillKey().base, now: now()) }
            return .released
        case .share: break
        }
        guard let kept = answer.kept,
            variance(in: kept.response.head, context).normalized(target: context.request.target) == kept.key.target
        else {
            return .released
        }
        guard let stored = answer.stored, case .shared(let body) = answer.body, let reader = body.reader() else {
            return .lookAgain
        }
        if case .notModified(let notModified) = Preconditions.evaluate(request: context.request, stored: stored.head) {
            return .reply(collapsed(notModified, .none(length: nil), stored, question, &context))
        }
        if let (head, body) = part(of: answer, for: context) { return .reply(collapsed(head, body, stored, question, &context)) }
        return .reply(collapsed(stored.head, .stream(reader, length: answer.length), stored, question, &context))
    }

    /// Returns the reply to a request that shares another request's fetch.
    func collapsed(
        _ head: ResponseHead, _ body: ReplyBody, _ stored: StoredResponse, _ question: Forwarding, _ context: inout RequestContext
    ) -> Reply {
        context.trace.verdict = .collapsed
        context.trace.fetchedAt = stored.requestTime
        context.trace.cacheStatus = CacheStatus(hit: false, fwd: question.forward, collapsed: true)
        var head = head
        head.fields[.age] = String(max(0, Freshness.of(stored, now: now()).age.seconds))
        return Reply(head: head, body: body, trace: context.trace)
    }
}
