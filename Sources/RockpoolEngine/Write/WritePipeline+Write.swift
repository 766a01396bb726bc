// Writes: sent while the upstream answers, otherwise queued in the outbox, never lost after acknowledgement (docs/outbox.md#overview).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore

extension WritePipeline {
    /// Default time for which a live write waits for earlier writes of its lane before it is queued behind them
    /// (docs/outbox.md#client-view).
    private static let laneWait = Duration.seconds(2)
    /// Time for which a client waits for the result of merging its live write with another client's.
    private static let mergeWait = Duration.seconds(5)

    func write(_ context: inout RequestContext) async -> Reply {
        context.trace.verdict = .pass
        context.trace.cacheStatus = CacheStatus(hit: false, fwd: .method)
        guard context.plan.queueable, context.plan.obstacleToQueueing == nil, let upstream = context.plan.upstream,
            context.wishes.policy == .queue
        else {
            if context.namesUnmapped { return refuseUnmapped(&context) }
            return await passSubstituted(&context)
        }
        do {
            switch try await Spool.read(
                context.exchange, limit: upstream.queue.maxBody, isReachable: context.isReachable && upstreams.isTrusted(upstream),
                into: data)
            {
            case .whole(let spooled):
                FailPoint.requestRead.reached()
                if let obstacle = obstacle(in: spooled, for: context) {
                    return await passUnqueued(spooled, because: obstacle, for: &context)
                }
                return await write(&context, body: spooled, upstream: upstream)
            case .passing(let rest, let problem):
                return context.namesUnmapped ? refuseUnmapped(&context) : await pass(&context, as: rest, orElse: problem)
            case .refused(let problem): return refuse(problem, context: &context)
            }
        } catch {
            return refuse(Problem(.badRequest, detail: "the request body broke off: \(error.detail)"), context: &context)
        }
    }

    // MARK: not queued

    /// Maximum length in bytes of an unqueued body that is searched for local ids.
    private static let scanLimit = Int.mib(1)

    private func refuseUnmapped(_ context: inout RequestContext) -> Reply {
        refuse(
            Problem(.notQueueable, detail: "it names what its upstream has none of yet, and may not wait", retryAfter: 5), context: &context
        )
    }

    /// Forwards a write that may not be queued, with its local ids replaced by the server's.
    private func passSubstituted(_ context: inout RequestContext) async -> Reply {
        guard !data.localIDs.isEmpty, let body = context.exchange.body, let length = context.exchange.bodyLength, length <= Self.scanLimit
        else {
            return await pass(&context)
        }
        do {
            let bytes = try await body.collect(upTo: Self.scanLimit).bytes
            return await pass(&context, as: try substituted(Array(bytes.readableBytesView), for: context))
        } catch is UnmappedLocalIDs {
            return refuseUnmapped(&context)
        } catch {
            return refuse(Problem(.badRequest, detail: "the request body broke off"), context: &context)
        }
    }

    /// Returns a body with its local ids replaced by the server's.
    private func substituted(_ bytes: [UInt8], for context: RequestContext) throws -> OutboundRequest.Body {
        let replaced = try data.localIDs.substituted(context.request, bytes).body
        return replaced.isEmpty ? OutboundRequest.Body.none : .bytes(ByteBuffer(bytes: replaced))
    }

    /// Returns the reason why the body of a queueable write must not wait, unless its route says that it may.
    private func obstacle(in body: Spool.Whole, for context: RequestContext) -> QueueObstacle? {
        guard context.plan.route?.queue != .always, case .inline(let bytes) = body.stored else { return nil }
        let obstacle = QueueObstacle.of(context.request, body: bytes)
        return obstacle == .graphQL && context.plan.route?.isReadByBody == true ? nil : obstacle
    }

    /// Forwards a write that was read whole before its body turned out to be none that may wait.
    private func passUnqueued(
        _ body: Spool.Whole, because obstacle: QueueObstacle, for context: inout RequestContext
    ) async -> Reply {
        guard !context.namesUnmapped, case .inline(let bytes) = body.stored else { return refuseUnmapped(&context) }
        do {
            let outbound = data.localIDs.isEmpty ? body.outbound : try substituted(bytes, for: context)
            return await pass(&context, as: outbound, orElse: unqueued(because: obstacle, for: context))
        } catch {
            return refuseUnmapped(&context)
        }
    }

    /// The refusal of a write that waits only by a route of its own, with that route.
    private func unqueued(because obstacle: QueueObstacle?, for context: RequestContext) -> Problem {
        let reason =
            obstacle.map { "\($0.words) is not queued; to queue it, add to the upstream's routes: \($0.remedy(for: context.request))" }
            ?? "this write may not be queued"
        return Problem(
            .notQueueable, detail: "\(context.request.origin.hostAndPort) cannot be reached and \(reason)",
            upstream: context.plan.upstream?.name, retryAfter: 5)
    }

    /// Forwards a write that may not, or cannot, be queued.
    /// - Parameter problem: The reason why the write cannot be queued; the reply if its upstream is unreachable.
    private func pass(
        _ context: inout RequestContext, as body: OutboundRequest.Body? = nil, orElse problem: Problem? = nil
    ) async -> Reply {
        let streamed = context.exchange.body.map { OutboundRequest.Body.stream($0, length: context.exchange.bodyLength) } ?? .none
        let isRepeatable = context.request.method.isIdempotent
        do throws(TransferFailure) {
            if let upstream = context.plan.upstream, context.isReachable, !upstreams.isTrusted(upstream) {
                throw TransferFailure.notTried(.captive, upstreams.lastFailure(upstream))
            }
            let sentAt = now()
            var head = context.request
            head.acceptReadable(context.plan.success)
            let answer = try await reads.fetch(head, body: body ?? streamed, for: &context, freshConnection: !isRepeatable)
            let bytes: [UInt8]? =
                switch body {
                case .bytes(let bytes)?: Array(bytes.readableBytesView)
                case nil where context.exchange.body == nil: []
                default: nil
                }
            return await relay(answer, to: context.request, body: bytes, sentAt: sentAt, context: &context)
        } catch {
            guard context.plan.upstream != nil, error.sent == .no, error.kind != .tls, error.kind != .denied else {
                return context.unanswered(error, offlineMiss: false)
            }
            context.noteFailure(error)
            let mayNever = context.plan.route?.queue == .never || context.wishes.policy != .queue
            var refusal = problem ?? unqueued(because: mayNever ? nil : QueueObstacle.of(context.request), for: context)
            if let reason = context.plan.obstacleToQueueing, problem == nil { refusal.detail += ": \(reason)" }
            if refusal.type == ProblemType.notQueueable.rawValue { refusal.error = error.proxyErrorName }
            return refuse(refusal, context: &context)
        }
    }

    func refuse(_ problem: Problem, context: inout RequestContext) -> Reply {
        context.trace.verdict = .refused
        context.trace.record(.refused(problem: problem.type))
        return Reply(problem, context.trace)
    }

    // MARK: queueable

    private func write(_ context: inout RequestContext, body: Spool.Whole, upstream: Upstream) async -> Reply {
        do {
            var draft = try await draft(context, body: body, upstream: upstream)
            guard draft.operation.keyIsClients else {
                return try await sendOrKeep(&draft, body: body, context: &context, upstream: upstream)
            }
            let key = KeysUnderWay.Key(draft.operation)
            let standing = keysUnderWay.claim(key, fingerprint: draft.operation.fingerprint)
            defer { if standing == .first { keysUnderWay.leave(key) } }
            // Checked after the claim: an earlier request with this key is by now either in the outbox or still in progress.
            if let earlier = try await earlierAnswer(to: draft.operation, context: context) {
                body.discard()
                return earlier
            }
            if standing != .first, context.isReachable {
                body.discard()
                return refuse(underWay(key.key, standing: standing), context: &context)
            }
            return try await sendOrKeep(&draft, body: body, context: &context, upstream: upstream)
        } catch {
            return outboxFailed(error, body: body, context: &context)
        }
    }

    private func underWay(_ key: String, standing: KeysUnderWay.Standing) -> Problem {
        standing == .reused
            ? Problem(.keyReused, detail: "idempotency key \(key) is being used for another request")
            : Problem(.conflict, detail: "a request with idempotency key \(key) is being sent; ask again in a moment", retryAfter: 1)
    }

    private func sendOrKeep(
        _ draft: inout ReceivedWrite, body: Spool.Whole, context: inout RequestContext, upstream: Upstream
    ) async throws -> Reply {
        var isFree = false
        if !context.wishes.respondsAsync, !draft.mustWait {
            isFree = try await laneIsFree(for: draft.operation, upstream: upstream, context: context)
        }
        guard isFree else {
            noteAbsence(&context, operation: &draft.operation)
            return try await enqueue(draft, body: body, context: &context)
        }
        do {
            if draft.operation.takesBase { draft.condition = await ownWrites.knownETag(for: context) }
            guard let answer = try await sendLive(draft, context: &context, upstream: upstream) else {
                // Another client has changed the entity since this one read it: the write is merged like a queued one.
                return try await enqueue(draft, body: body, context: &context, awaiting: Self.mergeWait)
            }
            body.discard()
            return answer
        } catch let failure as TransferFailure {
            guard failure.kind != .tls, failure.kind != .denied, failure.kind != .protocolError || failure.sent != .no else {
                body.discard()
                return context.unanswered(failure, offlineMiss: false)
            }
            context.noteFailure(failure)
            // The client has disconnected without a reply and will retry, so the write is not queued.
            guard failure.kind != .cancelled else {
                body.discard()
                return context.unanswered(failure, offlineMiss: false)
            }
            draft.operation.note(
                failure, isConditional: draft.condition != nil, context: ReplayContext(upstream), now: now())
            return try await enqueue(draft, body: body, context: &context)
        }
    }

    /// Records in a queued write, and in `Proxy-Status`, that its upstream is known to be unreachable, as for a write that failed itself.
    private func noteAbsence(_ context: inout RequestContext, operation: inout QueuedWriteDraft) {
        let reason: Reachability.Reason
        if case .no(let known) = context.permission {
            reason = known
        } else if let upstream = context.plan.upstream, !upstreams.isTrusted(upstream) {
            reason = .captive
        } else {
            return
        }
        let failure = TransferFailure.notTried(reason, upstreams.lastFailure(context.plan.upstream))
        operation.lastError = failure.proxyErrorName
        context.noteFailure(failure)
    }

    /// True if a live write may be sent now: the upstream is reachable and no earlier operation of the lane is waiting. Earlier operations
    /// get a short time to finish.
    private func laneIsFree(for operation: QueuedWriteDraft, upstream: Upstream, context: RequestContext) async throws -> Bool {
        guard context.isReachable, upstreams.isTrusted(upstream) else { return false }
        let lane = operation.lane
        let deadline = ContinuousClock.now + (context.wishes.wait ?? Self.laneWait)
        while true {
            let version = events.version
            let standings = try await data.standings(lane: lane, upstream: upstream.name)
            let holders = LaneStanding.holding(operation.principal, among: standings) { credentials.isProved($0) }
            // Checked after the rows are read: an operation that has just ended may still execute upstream, and its hold is set before its
            // row changes (docs/outbox.md#wire-rule).
            let isProved = credentials.isProved(operation.principal)
            if notifier.laneHolds.holds(upstream: upstream.name, lane: lane, forProved: isProved, now: now()) { return false }
            if holders.isEmpty { return context.permission == .trial || upstreams.isReachable(upstream) }
            guard upstreams.isReachable(upstream), holders.isSubset(of: [.pending, .inflight]) else { return false }
            guard await events.change(after: version, before: deadline) else { return false }
        }
    }

    /// Sends a write while its client waits.
    /// - Returns: nil if the upstream has refused the condition that Rockpool added.
    private func sendLive(_ draft: ReceivedWrite, context: inout RequestContext, upstream: Upstream) async throws -> Reply? {
        var head = draft.head
        if let condition = draft.condition { head.fields[.ifMatch] = condition }
        head.setKey(draft.operation.idempotencyKey, isClients: draft.operation.keyIsClients, for: upstream.idempotency)
        head.acceptReadable(context.plan.success)
        let isRepeatable = head.method.isIdempotent || upstream.idempotency.honoured == .yes
        let sentAt = now()
        let answer = try await reads.fetch(head, body: draft.body, for: &context, freshConnection: !isRepeatable)
        try await upstreams.checkOwn(answer, to: head, upstream: upstream)
        if draft.condition != nil, answer.head.status == 412 {
            answer.body.abandon()
            return nil
        }
        return await relay(answer, to: head, body: bytes(of: draft), sentAt: sentAt, context: &context)
    }

    /// Returns the body as it was sent; nil if it is too large to be a representation that reads need.
    private func bytes(of draft: ReceivedWrite) -> [UInt8]? {
        switch draft.body {
        case .none: []
        case .bytes(let bytes): Array(bytes.readableBytesView)
        default:
            if case let content? = try? data.content(of: draft.operation.body), let bytes = try? content.bytes(),
                bytes.count <= OwnWriteEffects.representationLimit
            {
                bytes
            } else {
                nil
            }
        }
    }

    /// Maximum size in bytes of an answer that is read whole before it is passed on, because it may be a representation, or a failure.
    private static let answerLimit = Int.mib(1)

    /// Returns the answer with its body in memory if it may be the representation of the write's entity or
    /// report a failure, and the body's bytes.
    private func collected(_ answer: OriginReply, context: RequestContext) async -> (OriginReply, [UInt8]?) {
        let mayRepresent =
            [200, 201].contains(answer.head.status)
            && (MediaType.isJSON(answer.head.fields) || answer.head.fields.contains(.contentLocation))
            && (context.plan.entity?.resource != nil || context.request.method == .put)
        guard context.plan.upstream != nil, answer.length ?? 0 <= Int64(Self.answerLimit),
            mayRepresent || AnswerFailure.needsBody(of: answer.head, by: context.plan.success)
        else { return (answer, nil) }
        var (answer, bytes) = (answer, ByteBuffer())
        let source = answer.body
        do throws(TransferFailure) {
            while var chunk = try await source.next() {
                bytes.writeBuffer(&chunk)
                guard bytes.readableBytes <= Self.answerLimit else {
                    answer.body = BodyPipe(bytes, then: source)
                    return (answer, nil)
                }
            }
        } catch {
            answer.body = BodyPipe(bytes, then: BodyPipe(broken: error))
            return (answer, nil)
        }
        answer.body = BodyPipe(whole: bytes)
        return (answer, Array(bytes.readableBytesView))
    }

    /// Returns the response to a write. If the response declares itself to be the response to a GET, it is stored (RFC 9110 §9.3.3).
    /// - Parameters:
    ///   - request: the request as it was sent.
    ///   - body: its body; nil if it is not at hand.
    private func relay(
        _ answer: OriginReply, to request: RequestHead, body: [UInt8]?, sentAt: Timestamp, context: inout RequestContext
    ) async -> Reply {
        let (answer, received) = await collected(answer, context: context)
        // True if another write has invalidated the URL since this one was sent.
        let isOutdated = cache.wasInvalidated(context.request.url, since: sentAt)
        await reads.updates.invalidate(after: answer.head, to: context.request)
        var write = AnsweredWrite(
            request: request, body: body, answer: answer.head, answerBody: received)
        write.success = context.plan.success
        await effects.note(write, partition: context.identity.partition, sentAt: sentAt)
        if let upstream = context.plan.upstream, context.plan.route?.logout == true, write.endsSession {
            await identities.end(context.identity, at: upstream)
        }
        guard context.request.method == .post, answer.head.fields.contains(.contentLocation), !isOutdated else {
            return Reply(head: answer.head, body: context.bodyOnTheWay(answer), trace: context.trace)
        }
        let fetched = await reads.responses.store(answer, sentAt: now(), among: [], for: &context, onEnd: {})
        context.trace.cacheStatus = CacheStatus(hit: false, fwd: .method, stored: fetched.stored != nil, detail: fetched.detail)
        return Reply(head: fetched.head, body: fetched.bodyForRequester(in: context), trace: context.trace)
    }

    // MARK: the outbox

    private func outboxFailed(_ error: any Error, body: Spool.Whole, context: inout RequestContext) -> Reply {
        body.discard()
        if error is MergedSince {
            return refuse(
                Problem(
                    .preconditionFailed,
                    detail: "the state that If-Match names was merged with another client's change since; read the entity again"),
                context: &context)
        }
        if case DataStoreError.unknownDependency = error {
            return refuse(Problem(.badRequest, detail: "Rockpool-Depends-On: \(error)"), context: &context)
        }
        if case DataStoreError.full = error {
            events.tell(.storage(detail: "outbox full"))
            return refuse(Problem(.outboxFull, detail: "storage.data_limit is reached; nothing of this write was kept"), context: &context)
        }
        if case DataStoreError.shareUsedUp(let share) = error {
            events.tell(.storage(detail: "outbox share used up"))
            return refuse(Problem(.outboxFull, detail: "\(share.words) is used up; nothing of this write was kept"), context: &context)
        }
        logger.failed("outbox failed", error: error)
        // A failed commit may nevertheless be in the write-ahead log and reappear after a crash.
        let what = data.trouble == nil ? "the outbox could not keep this write" : "it is not known whether the outbox has kept this write"
        return refuse(Problem(.notQueueable, detail: "\(what): \(error)", retryAfter: 5), context: &context)
    }
}

extension QueuedWriteDraft {
    /// Records the outcome of a live attempt that preceded queueing, and whether the operation may be sent again automatically.
    /// - Parameter isConditional: true if the attempt named the version that it changes: then a second attempt is refused after the first has
    ///   taken effect.
    fileprivate mutating func note(_ failure: TransferFailure, isConditional: Bool, context: ReplayContext, now: Timestamp) {
        lastError = failure.proxyErrorName
        guard failure.sent != .no else { return }
        firstSentAt = now
        // The response to a request that must not be sent twice was lost. Its effect is unknown and must be resolved as `uncertain`
        // (docs/outbox.md#wire-rule).
        guard !(request.method.isIdempotent || isConditional || context.idempotency.honoured == .yes) else { return }
        state = .uncertain
        reason = .lostAnswer
        nextAttemptAt = context.nextProbe(after: 0, now: now)
    }
}
