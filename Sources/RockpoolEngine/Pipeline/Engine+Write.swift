// Writes: sent while the upstream answers, otherwise queued in the outbox, never lost after acknowledgement (docs/outbox.md#overview).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore

extension Engine {
    /// Default time for which a live write waits for earlier writes of its lane before it is queued behind them
    /// (docs/outbox.md#client-view).
    private static let laneWait = Duration.seconds(2)

    func write(_ job: Job, _ trace: inout Trace) async -> Reply {
        trace.verdict = .pass
        trace.cacheStatus = CacheStatus(hit: false, fwd: .method)
        guard job.plan.queueable, let upstream = job.plan.upstream, job.wishes.policy == .queue else {
            if job.namesUnmapped { return refuseUnmapped(&trace) }
            return await passSubstituted(job, &trace)
        }
        do {
            switch try await Spool.read(
                job.exchange, limit: upstream.queue.maxBody, isReachable: job.isReachable && isTrusted(upstream), into: data)
            {
            case .whole(let spooled):
                FailPoint.requestRead.reached()
                return await write(job, spooled, upstream, &trace)
            case .passing(let rest, let problem):
                return job.namesUnmapped ? refuseUnmapped(&trace) : await pass(job, as: rest, orElse: problem, &trace)
            case .refused(let problem): return refuse(problem, &trace)
            }
        } catch {
            return refuse(Problem(.badRequest, detail: "the request body broke off: \(error.detail)"), &trace)
        }
    }

    func isReachable(_ upstream: Upstream) -> Bool {
        reachability.machine(of: upstream.name)?.isReachable ?? true
    }

    /// True if responses from the upstream's address are assumed to come from the upstream. Otherwise no write is sent.
    func isTrusted(_ upstream: Upstream) -> Bool { reachability.isTrusted(upstream.name) }

    // MARK: not queued

    /// Maximum length in bytes of an unqueued body that is searched for local ids.
    private static let scanLimit = 1 << 20

    private func refuseUnmapped(_ trace: inout Trace) -> Reply {
        refuse(Problem(.notQueueable, detail: "it names what its upstream has none of yet, and may not wait", retryAfter: 5), &trace)
    }

    /// Forwards a write that may not be queued, with its local ids replaced by the server's.
    private func passSubstituted(_ job: Job, _ trace: inout Trace) async -> Reply {
        guard !data.localIDs.isEmpty, let body = job.exchange.body, let length = job.exchange.bodyLength, length <= Self.scanLimit else {
            return await pass(job, &trace)
        }
        do {
            let bytes = try await body.collect(upTo: Self.scanLimit).bytes
            let replaced = try data.localIDs.substituted(job.request, Array(bytes.readableBytesView)).body
            return await pass(job, as: replaced.isEmpty ? OutboundRequest.Body.none : .bytes(ByteBuffer(bytes: replaced)), &trace)
        } catch is UnmappedLocalIDs {
            return refuseUnmapped(&trace)
        } catch {
            return refuse(Problem(.badRequest, detail: "the request body broke off"), &trace)
        }
    }

    /// Forwards a write that may not, or cannot, be queued.
    /// - Parameter problem: The reason why the write cannot be queued; the reply if its upstream is unreachable.
    private func pass(
        _ job: Job, as body: OutboundRequest.Body? = nil, orElse problem: Problem? = nil, _ trace: inout Trace
    ) async -> Reply {
        let streamed = job.exchange.body.map { OutboundRequest.Body.stream($0, length: job.exchange.bodyLength) } ?? .none
        let isRepeatable = job.request.method.isIdempotent
        do throws(TransferFailure) {
            if let upstream = job.plan.upstream, job.isReachable, !isTrusted(upstream) {
                throw TransferFailure.notTried(.captive, lastFailure(upstream))
            }
            let sentAt = now()
            let answer = try await fetch(job.request, body ?? streamed, for: job, freshConnection: !isRepeatable, &trace)
            return await relay(answer, sentAt, job, &trace)
        } catch {
            guard job.plan.upstream != nil, error.sent == .no, error.kind != .tls, error.kind != .denied else {
                return unanswered(error, job, &trace, offlineMiss: false)
            }
            noteFailure(error, job, &trace)
            if let problem { return refuse(problem, &trace) }
            return refuse(
                Problem(
                    .notQueueable, detail: "\(job.request.origin.hostAndPort) cannot be reached and this write may not be queued",
                    upstream: job.plan.upstream?.name, error: error.proxyErrorName, retryAfter: 5), &trace)
        }
    }

    func refuse(_ problem: Problem, _ trace: inout Trace) -> Reply {
        trace.verdict = .refused
        trace.record(.refused(problem: problem.type))
        return reply(problem, trace)
    }

    // MARK: queueable

    private func write(_ job: Job, _ body: Spool.Whole, _ upstream: Upstream, _ trace: inout Trace) async -> Reply {
        do {
            var draft = try await draft(job, body, upstream)
            guard draft.operation.keyIsClients else { return try await sendOrKeep(&draft, body, job, upstream, &trace) }
            let key = KeysUnderWay.Key(draft.operation)
            let standing = keysUnderWay.claim(key, fingerprint: draft.operation.fingerprint)
            defer { if standing == .first { keysUnderWay.leave(key) } }
            // Checked after the claim: an earlier request with this key is by now either in the outbox or still in progress.
            if let earlier = try await earlierAnswer(to: draft.operation, job, trace) {
                body.discard()
                return earlier
            }
            if standing != .first, job.isReachable {
                body.discard()
                return refuse(underWay(key.key, standing), &trace)
            }
            return try await sendOrKeep(&draft, body, job, upstream, &trace)
        } catch {
            return outboxFailed(error, body, &trace)
        }
    }

    private func underWay(_ key: String, _ standing: KeysUnderWay.Standing) -> Problem {
        standing == .reused
            ? Problem(.keyReused, detail: "idempotency key \(key) is being used for another request")
            : Problem(.conflict, detail: "a request with idempotency key \(key) is being sent; ask again in a moment", retryAfter: 1)
    }

    private func sendOrKeep(
        _ draft: inout Draft, _ body: Spool.Whole, _ job: Job, _ upstream: Upstream, _ trace: inout Trace
    ) async throws -> Reply {
        var isFree = false
        if !job.wishes.respondsAsync, !draft.mustWait { isFree = try await laneIsFree(for: draft.operation, upstream, job) }
        guard isFree else {
            noteAbsence(job, &draft.operation, &trace)
            return try await enqueue(draft, body, job, &trace)
        }
        do {
            let answer = try await sendLive(draft, job, upstream, &trace)
            body.discard()
            return answer
        } catch let failure as TransferFailure {
            guard failure.kind != .tls, failure.kind != .denied, failure.kind != .protocolError || failure.sent != .no else {
                body.discard()
                return unanswered(failure, job, &trace, offlineMiss: false)
            }
            noteFailure(failure, job, &trace)
            // The client has disconnected without a reply and will retry, so the write is not queued.
            guard failure.kind != .cancelled else {
                body.discard()
                return unanswered(failure, job, &trace, offlineMiss: false)
            }
            draft.operation.note(failure, context: ReplayContext(upstream), now: now())
            return try await enqueue(draft, body, job, &trace)
        }
    }

    /// Records in a queued write, and in `Proxy-Status`, that its upstream is known to be unreachable, as for a write that failed itself.
    private func noteAbsence(_ job: Job, _ operation: inout NewOperation, _ trace: inout Trace) {
        let reason: Reachability.Reason
        if case .no(let known) = job.permission {
            reason = known
        } else if let upstream = job.plan.upstream, !isTrusted(upstream) {
            reason = .captive
        } else {
            return
        }
        let failure = TransferFailure.notTried(reason, lastFailure(job.plan.upstream))
        operation.lastError = failure.proxyErrorName
        noteFailure(failure, job, &trace)
    }

    /// True if a live write may be sent now: the upstream is reachable and no earlier operation of the lane is waiting. Earlier operations
    /// get a short time to finish.
    private func laneIsFree(for operation: NewOperation, _ upstream: Upstream, _ job: Job) async throws -> Bool {
        guard job.isReachable, isTrusted(upstream) else { return false }
        let lane = operation.lane
        let deadline = ContinuousClock.now + (job.wishes.wait ?? Self.laneWait)
        while true {
            let version = events.version
            let standings = try await data.standings(lane: lane, upstream: upstream.name)
            let holders = LaneStanding.holding(operation.principal, among: standings) { credentials.isProved($0) }
            // Checked after the rows are read: an operation that has just ended may still execute upstream, and its hold is set before its
            // row changes (docs/outbox.md#wire-rule).
            let isProved = credentials.isProved(operation.principal)
            if laneHolds.holds(upstream.name, lane, forProved: isProved, now: now()) { return false }
            if holders.isEmpty { return job.permission == .trial || isReachable(upstream) }
            guard isReachable(upstream), holders.isSubset(of: [.pending, .inflight]) else { return false }
            guard await events.change(after: version, before: deadline) else { return false }
        }
    }

    private func sendLive(_ draft: Draft, _ job: Job, _ upstream: Upstream, _ trace: inout Trace) async throws -> Reply {
        var head = draft.head
        head.setKey(draft.operation.idempotencyKey, isClients: draft.operation.keyIsClients, upstream.idempotency)
        let isRepeatable = head.method.isIdempotent || upstream.idempotency.honoured == .yes
        let sentAt = now()
        let answer = try await fetch(head, draft.body, for: job, freshConnection: !isRepeatable, &trace)
        try await checkOwn(answer, to: head, upstream)
        return await relay(answer, sentAt, job, &trace)
    }

    /// Returns the response to a write. If the response declares itself to be the response to a GET, it is stored (RFC 9110 §9.3.3).
    private func relay(_ answer: OriginReply, _ sentAt: Timestamp, _ job: Job, _ trace: inout Trace) async -> Reply {
        // True if another write has invalidated the URL since this one was sent.
        let isOutdated = cache.wasInvalidated(job.request.url, since: sentAt)
        await invalidate(after: answer.head, to: job.request)
        guard job.request.method == .post, answer.head.fields.contains(.contentLocation), !isOutdated else {
            return Reply(head: answer.head, body: job.bodyOnTheWay(answer), trace: trace)
        }
        let question = Question(found: [], context: ReuseContext(), forward: .method, epoch: nil)
        let kept = await keep(answer, now(), question, job, end: {}, &trace)
        trace.cacheStatus = CacheStatus(hit: false, fwd: .method, stored: kept.stored != nil, detail: kept.detail)
        return Reply(head: kept.head, body: kept.bodyForTheFirst(job), trace: trace)
    }

    /// Invalidates stored responses after a write (RFC 9111 §4.4).
    func invalidate(after answer: ResponseHead, to request: RequestHead) async {
        let urls = Invalidation.targets(request: request, response: answer).flatMap { url in
            // Includes the URL under which equivalent queries are stored.
            guard let request = try? RequestHead(url: url) else { return [url] }
            let stored = key(of: request, routes.plan(for: request), in: .shared).url
            return stored == url ? [url] : [url, stored]
        }
        let groups = CacheGroups.invalidated(by: answer, to: request)
        do {
            if !urls.isEmpty { _ = try await cache.invalidate(urls: urls) }
            if !groups.isEmpty { _ = try await cache.invalidate(groups: groups, origin: request.origin) }
        } catch { logger.failed("cache invalidation failed", error) }
    }

    // MARK: the outbox

    private func outboxFailed(_ error: any Error, _ body: Spool.Whole, _ trace: inout Trace) -> Reply {
        body.discard()
        if case DataStoreError.unknownDependency = error {
            return refuse(Problem(.badRequest, detail: "Rockpool-Depends-On: \(error)"), &trace)
        }
        if case DataStoreError.full = error {
            events.tell(.storage(detail: "outbox full"))
            return refuse(Problem(.outboxFull, detail: "storage.data_limit is reached; nothing of this write was kept"), &trace)
        }
        if case DataStoreError.shareUsedUp(let share) = error {
            events.tell(.storage(detail: "outbox share used up"))
            return refuse(Problem(.outboxFull, detail: "\(share.words) is used up; nothing of this write was kept"), &trace)
        }
        logger.failed("outbox failed", error)
        // A failed commit may nevertheless be in the write-ahead log and reappear after a crash.
        let what = data.trouble == nil ? "the outbox could not keep this write" : "it is not known whether the outbox has kept this write"
        return refuse(Problem(.notQueueable, detail: "\(what): \(error)", retryAfter: 5), &trace)
    }
}

extension NewOperation {
    /// Records the outcome of a live attempt that preceded queueing, and whether the operation may be sent again automatically.
    fileprivate mutating func note(_ failure: TransferFailure, context: ReplayContext, now: Timestamp) {
        lastError = failure.proxyErrorName
        guard failure.sent != .no else { return }
        firstSentAt = now
        // The response to a request that must not be sent twice was lost. Its effect is unknown and must be resolved as `uncertain`
        // (docs/outbox.md#wire-rule).
        guard !(request.method.isIdempotent || context.idempotency.honoured == .yes) else { return }
        state = .uncertain
        reason = .lostAnswer
        nextAttemptAt = context.nextProbe(after: 0, now: now)
    }
}

extension ReplayContext {
    init(_ upstream: Upstream) { self.init(idempotency: upstream.idempotency, uncertainPolicy: upstream.queue.uncertain) }
}

extension IdempotencySettings {
    var name: HTTPField.Name { HTTPField.Name(header) ?? .idempotencyKey }
}

extension RequestHead {
    /// Sets the operation's key in the field that the upstream reads. A client's own key in that field is left unchanged.
    mutating func setKey(_ key: String, isClients: Bool, _ settings: IdempotencySettings) {
        if isClients, fields.contains(settings.name) { return }
        guard settings.honoured != .no else { return }
        fields[settings.name] = IdempotencyKey.fieldValue(key, format: settings.format)
    }
}
