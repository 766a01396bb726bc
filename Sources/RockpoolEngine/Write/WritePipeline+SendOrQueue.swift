// Queueable writes: sent while the upstream answers, otherwise accepted into the outbox and answered with 202, never lost after
// acknowledgement (docs/outbox.md#overview, docs/outbox.md#client-view; RFC 7240, RFC 9110 §15.3.3).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore

extension WritePipeline {
    /// Default time for which a live write waits for earlier writes of its lane before it is queued behind them
    /// (docs/outbox.md#client-view).
    private static let laneWait = Duration.seconds(2)
    /// Time in which the credential of a live write releases the earlier writes that wait for one. What it does not release holds no POST that
    /// is an entity of its own: its client gets the upstream's answer to the credential.
    private static let releaseWait = Duration.milliseconds(500)
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
        guard context.request.fields[values: upstream.idempotency.name].count < 2 else {
            return refuse(Problem(.badRequest, detail: "more than one \(upstream.idempotency.name.rawName)"), context: &context)
        }
        if let key = context.request.clientKey(for: upstream.idempotency), key.utf8.count > IdempotencyKey.lengthLimit {
            let detail = "a key in \(upstream.idempotency.name.rawName) has at most \(IdempotencyKey.lengthLimit) bytes"
            return refuse(Problem(.badRequest, detail: detail), context: &context)
        }
        if case .no(let reason) = context.permission {
            let failure = TransferFailure.notTried(reason, upstreams.lastFailure(upstream))
            if let asked = await reads.storedReplies.challenge(of: reads.spaces, after: failure, to: &context) { return asked }
            let since = upstreams.reachability.machine(of: upstream.name)?.since
            if let problem = context.shortWait(awaySince: since ?? now(), now: now()) { return refuse(problem, context: &context) }
        }
        do {
            switch try await Spool.read(
                context.exchange, limit: upstream.queue.maxBody, isReachable: context.isReachable && upstreams.isTrusted(upstream),
                isTrial: context.permission == .trial, into: data)
            {
            case .whole(let spooled):
                FailPoint.requestRead.reached()
                if case .inline(let bytes) = spooled.stored, let obstacle = context.plan.obstacle(in: bytes, of: context.request) {
                    return await passUnqueued(spooled, because: obstacle, for: &context)
                }
                return await write(&context, body: spooled, upstream: upstream)
            case .passing(let rest, let problem, let held):
                return context.namesUnmapped ? refuseUnmapped(&context) : await pass(&context, as: rest, orElse: problem, held: held)
            case .refused(let problem): return refuse(problem, context: &context)
            }
        } catch {
            return refuse(Problem(.badRequest, detail: "the request body broke off: \(error.detail)"), context: &context)
        }
    }

    func write(_ context: inout RequestContext, body: Spool.Whole, upstream: Upstream) async -> Reply {
        context.identity = credentials.current(context.identity)
        do {
            var draft = try await draft(context, body: body, upstream: upstream)
            guard draft.operation.keyIsClients else {
                if let same = try await repeatedWrite(draft.operation, body: body, context: &context) { return same }
                return try await sendOrKeep(&draft, body: body, context: &context, upstream: upstream)
            }
            let standing = keysUnderWay.claim(keyOf: draft.operation)
            defer { standing.leave() }
            // Checked after the claim: an earlier request with this key is by now either in the outbox or still in progress.
            if let earlier = try await earlierAnswer(to: draft.operation, context: context) {
                body.discard()
                return earlier
            }
            if let problem = standing.problem(of: draft.operation.idempotencyKey), context.isReachable {
                body.discard()
                return refuse(problem, context: &context)
            }
            return try await sendOrKeep(&draft, body: body, context: &context, upstream: upstream)
        } catch {
            return await outboxFailed(error, body: body, context: &context)
        }
    }

    private func sendOrKeep(
        _ draft: inout ReceivedWrite, body: Spool.Whole, context: inout RequestContext, upstream: Upstream
    ) async throws -> Reply {
        let deadline = ContinuousClock.now + (context.wishes.wait ?? Self.laneWait)
        let turn = context.isReachable && draft.operation.takesBase ? ClientLane(draft.operation) : nil
        if let turn { await entityTurns.enter(key: turn) }
        defer { if let turn { entityTurns.leave(key: turn) } }
        var isFree = false
        if !context.wishes.respondsAsync, !draft.mustWait {
            isFree = try await laneIsFree(for: draft.operation, upstream: upstream, before: deadline, context: context)
        }
        guard isFree else {
            noteAbsence(&context, operation: &draft.operation)
            return try await enqueue(draft, body: body, context: &context)
        }
        if draft.operation.takesBase, draft.head.takesBase(context.plan.entity?.resource) {
            draft.condition = await ownWrites.knownETag(for: context, replacement: draft.operation.replacement)
        }
        // Telemetry counts on no share.
        let counted = draft.operation.isTelemetry ? OutboxShare.principal : share(of: draft.operation.principal, at: upstream)
        draft.trace = await traces.record(draft, share: counted)
        return try await send(&draft, body: body, context: &context, upstream: upstream)
    }

    /// Sends a write that is recorded, and ends its record. It is queued if it gets no answer.
    func send(
        _ draft: inout ReceivedWrite, body: Spool.Whole, context: inout RequestContext, upstream: Upstream
    ) async throws -> Reply {
        // Before the client gets its answer, whatever the answer is; no effect after the write was queued.
        defer { traces.end(draft.trace) }
        let sentAt = context.exchange.early?.sentAt ?? cache.moment()
        do {
            guard let answer = try await sendLive(draft, context: &context, upstream: upstream) else {
                // Another client has changed the entity since this one read it: the write is merged like a queued one.
                return try await enqueue(draft, body: body, context: &context, awaiting: Self.mergeWait)
            }
            body.discard()
            return answer
        } catch let last as TransferFailure {
            // The first sending counts if the second one has sent nothing.
            let failure = last.sent == .no ? context.exchange.early?.lost ?? last : last
            guard failure.kind != .tls, failure.kind != .denied, failure.kind != .protocolError || failure.sent != .no else {
                body.discard()
                return context.unanswered(failure, offlineMiss: false)
            }
            context.noteFailure(failure)
            // The client has disconnected without a reply and will retry, so the write is not queued.
            guard failure.kind != .cancelled else {
                body.discard()
                if failure.sent != .no {
                    traces.abandon(&draft.trace)
                    await liveEffects.noteUnknown(context.request, by: context.viewer)
                }
                return context.unanswered(failure, offlineMiss: false)
            }
            draft.operation.note(
                failure, isRepeatable: draft.condition != nil || draft.operation.isTelemetry, context: ReplayContext(upstream),
                sentAt: sentAt,
                now: now())
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
    /// get a short time to finish, until `deadline`.
    private func laneIsFree(
        for operation: QueuedWriteDraft, upstream: Upstream, before deadline: ContinuousClock.Instant, context: RequestContext
    ) async throws -> Bool {
        guard context.isReachable, upstreams.isTrusted(upstream) else { return false }
        // What other nodes of a fleet have accepted comes first; while that is not known, nothing is sent.
        do { try await data.catchUp() } catch DataStoreError.away { return false }
        let release = ContinuousClock.now + Self.releaseWait
        while true {
            let version = events.version
            let blocker = try await blocker(of: operation)
            // Checked after the rows are read: an operation that has just ended may still execute upstream, and its hold is set before its
            // row changes (docs/outbox.md#wire-rule).
            let isProved = credentials.isProved(operation.principal)
            if notifier.laneHolds.holds(upstream: upstream.name, lane: operation.lane, forProved: isProved, now: now()) { return false }
            guard let blocker else {
                await notifier.effectsAreNoted(before: operation, within: Self.laneWait)
                return context.permission == .trial || upstreams.isReachable(upstream)
            }
            guard upstreams.isReachable(upstream) else { return false }
            if blocker.waitsForCredential, operation.summary(now: now()).isApart {
                guard await events.change(after: version, before: min(deadline, release)) else { return true }
                continue
            }
            guard [.pending, .inflight, .uncertain].contains(blocker.state) else { return false }
            guard await events.change(after: version, before: deadline) else { return false }
        }
    }

    /// Returns the open operation of its lane that a new write waits for; nil if it may be sent.
    private func blocker(of operation: QueuedWriteDraft) async throws -> OperationLink? {
        let moment = now()
        let rules = LaneRules(routes: notifier.active.routes, now: moment) { [credentials] in credentials.isProved($0) }
        return try await data.blocker(of: operation.summary(now: moment), in: operation.lane, rules: rules)
    }

    // MARK: - The outbox

    /// Stores the operation and replies with 202, the optimistic reply, or the upstream's response if the client waits for it.
    /// - Parameter merge: how long the client waits for the outcome of merging; nil if nothing has to be merged.
    private func enqueue(
        _ draft: ReceivedWrite, body: Spool.Whole, context: inout RequestContext, awaiting merge: Duration? = nil
    ) async throws -> Reply {
        var operation = draft.operation
        operation.request.fields[.rockpoolCredential] = credentials.keepBeside(context.identity, of: context.original)
        if let upstream = context.plan.upstream { try await notifier.adopt(upstream) }
        await notifier.effectsAreNoted(before: operation, within: Self.laneWait)
        await ownWrites.pinBase(of: &operation, sentUnder: draft.condition, for: context)
        // Compute the reply before the operation is stored, otherwise the write would be folded into it twice.
        let blocking = try await blockingState(before: operation)
        if let problem = await objection(to: operation, isFirst: blocking == nil && merge == nil, context: context) {
            body.discard()
            return refuse(problem, context: &context)
        }
        let optimistic =
            context.wishes.respondsAsync || blocking != nil ? nil : await optimisticReply(to: operation, context: context)
        let form = await notifier.replies.form(for: context, isLearned: blocking == nil)
        operation.noteReply(isAcceptance: optimistic == nil && form.isAcceptance)
        let stored: QueuedWrite
        do {
            try Task.checkCancellation()
            if !operation.isTelemetry {
                operation.share = context.plan.upstream.map { share(of: operation.principal, at: $0) }
                operation.upstreamLimit = context.plan.upstream?.dataLimit
            }
            let taken = try await data.take(operation, ending: draft.trace)
            stored = taken.operation
            if taken.isRepeat {
                body.discard()
                return await reply(repeating: stored, context: &context)
            }
            // Since `adopt`, another write may have removed this host, because no open operation needed it yet.
            notifier.adoptHosts(of: [(stored.upstream, stored.request.origin)])
            await renewal.checkProof(of: stored)
            if let sentAt = stored.firstSentAt { await itemsBefore.note(stored, as: context.request, sentAt: sentAt) }
            if let squashed = taken.squashed { notifier.tell(squashed) }
            for dropped in taken.dropped { notifier.forget(dropped) }
        } catch DataStoreError.duplicateKey {
            // Another request with the same key was committed first.
            if let earlier = try await earlierAnswer(to: operation, context: context) {
                body.discard()
                return earlier
            }
            throw DataStoreError.duplicateKey(id: operation.id)
        }
        context.trace.verdict = .queued
        context.trace.record(.enqueued(operation: stored.id))
        context.trace.cacheStatus = CacheStatus(hit: false, fwd: .method, detail: "queued")
        notifier.tell(stored)
        if merge == nil, let optimistic { return reply(optimistic, to: stored, context: context).naming(data.holder(of: stored)) }
        if let merge, let settled = await settled(stored.id, within: merge) {
            // Its own effect, or an equal change: the last answer refused the write.
            if settled.reason == .probed, let optimistic { return reply(optimistic, to: settled, context: context) }
            guard settled.state == .delivered, settled.reason != .probed, let result = settled.result else {
                return await accepted(settled, form: await notifier.replies.form(for: context, isLearned: false), trace: context.trace)
            }
            var reply = Reply(head: result.head, body: .bytes(ByteBuffer(bytes: result.body)), trace: context.trace)
            reply.head.note(settled)
            return reply
        }
        var reply = await answered(stored, form: form, for: context)
        if let blocking, reply.head.status == 202 { reply.head.fields[.rockpoolState] = blocking.rawValue }
        return reply.naming(data.holder(of: stored))
    }

    /// Returns why a write that would wait is refused at once; nil if it may wait.
    /// - Parameter isFirst: true if no earlier write waits for a person, and nothing has to be merged.
    private func objection(to operation: QueuedWriteDraft, isFirst: Bool, context: RequestContext) async -> Problem? {
        if isFirst, let problem = await contradiction(of: operation, context: context) { return problem }
        let lack = Lack(files: notifier.overlay.files, cache: cache, lookup: reads.lookup, now: now())
        if let problem = await lack.problem(of: operation, context: context) { return problem }
        return operation.isTelemetry ? nil : acknowledgements.problem(of: operation, from: context.exchange, now: now())
    }

    /// Returns the share of the outbox that a write of `principal` counts against, by the proofs known now
    /// (docs/reference/behaviour.md#shares).
    func share(of principal: String?, at upstream: Upstream) -> OutboxShare {
        OutboxShare(
            principal: principal, isProved: credentials.isProved(principal),
            takesCredentials: data.takesCredentials(upstream.name) || !upstream.isDeclared)
    }

    /// Returns the state of an earlier write of the same client in the lane that waits for a person; nil without one.
    private func blockingState(before operation: QueuedWriteDraft) async throws -> OperationState? {
        if try await data.knowsNothingRare() { return nil }
        let blocker = try await blocker(of: operation)
        return blocker.flatMap { [.dead, .conflicted].contains($0.state) ? $0.state : nil }
    }

    /// The refusal of a write that was not kept: no power failure brings back the record of its live attempt, which has ended.
    func outboxFailed(_ error: any Error, body: Spool.Whole, context: inout RequestContext) async -> Reply {
        body.discard()
        await data.deleteEndedLiveWrites()
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
        if let error = error as? DataStoreError, error.isNoRoom {
            events.tell(.storage(detail: "outbox full"))
            return refuse(error.noRoom, context: &context)
        }
        if case DataStoreError.shareUsedUp(let share) = error {
            events.tell(.storage(detail: "outbox share used up"))
            return refuse(
                Problem(.outboxFull, detail: "\(share.words) is used up; nothing of this write was kept; \(Problem.roomAdvice)"),
                context: &context)
        }
        if case DataStoreError.upstreamFull = error {
            events.tell(.storage(detail: "upstream's share used up"))
            return refuse(
                Problem(.outboxFull, detail: "\(error); nothing of this write was kept; \(Problem.roomAdvice)"), context: &context)
        }
        if case DataStoreError.queueFull = error {
            return refuse(Problem(.outboxFull, detail: "\(error); nothing of this write was kept"), context: &context)
        }
        if case DataStoreError.away = error { return refuse(Problem(.notQueueable, detail: "\(error)", retryAfter: 5), context: &context) }
        logger.failed("outbox failed", error: error)
        // A failed commit may nevertheless be in the write-ahead log and reappear after a crash.
        let what = data.trouble == nil ? "the outbox could not keep this write" : "it is not known whether the outbox has kept this write"
        return refuse(Problem(.notQueueable, detail: "\(what): \(error)", retryAfter: 5), context: &context)
    }

    // MARK: - Replies

    /// Replies with 202; with `Prefer: respond-async, wait=N`, with the upstream's response if it arrives in time (RFC 7240 §4.1, §4.3).
    func answered(_ operation: QueuedWrite, form: QueuedReply, for context: RequestContext) async -> Reply {
        let (wishes, trace) = (context.wishes, context.trace)
        var reply = await accepted(operation, form: form, trace: trace)
        guard wishes.respondsAsync else { return reply }
        if let wait = wishes.wait, let settled = await settled(operation.id, within: wait), let result = settled.result {
            reply = Reply(head: result.head, body: .bytes(ByteBuffer(bytes: result.body)), trace: trace)
            reply.head.fields[.rockpoolOperation] = settled.id
            reply.head.fields[.rockpoolState] = settled.state.rawValue
        }
        reply.head.fields[.preferenceApplied] = wishes.wait.map { "respond-async, wait=\($0.components.seconds)" } ?? "respond-async"
        return reply
    }

    /// Returns the operation once it has ended, is dead or is in a conflict that a person must decide; nil when `wait` is over before.
    private func settled(_ id: String, within wait: Duration) async -> QueuedWrite? {
        let deadline = ContinuousClock.now + wait
        while true {
            let version = events.version
            guard let operation = try? await data.operation(id: id) else { return nil }
            if operation.state.hasEnded || operation.state == .dead { return operation }
            if operation.state == .conflicted {
                let unexamined = (try? await data.unexaminedConflicts()) ?? []
                if !unexamined.contains(where: { $0.id == id }) { return operation }
            }
            guard await events.change(after: version, before: deadline) else { return nil }
        }
    }

    /// Builds the reply: 202 with the status document (RFC 9110 §15.3.3), or in another form.
    func accepted(_ operation: QueuedWrite, form: QueuedReply, trace: Trace) async -> Reply {
        var head = ResponseHead(status: 202, fields: [.contentType: "application/json", .cacheControl: "no-store"])
        // The tag under which the file is read back, for clients that compare it with a listing.
        if operation.collection == nil, FileWrite(operation.request)?.effect == .content {
            head.fields[.eTag] = LocalETag(sequence: operation.sequence).fieldValue
        }
        head.fields[.location] = operation.statusPath
        head.note(operation)
        // The standing is in other rows. If they cannot be read, reply without it, because the write is already accepted.
        let standing = operation.needs.isEmpty ? nil : try? await documents.statusDocument(of: operation)
        let document = standing ?? OperationDocument.json(of: operation)
        switch form {
        case .document: return Reply(head: head, body: .bytes(ByteBuffer(bytes: document.serialized())), trace: trace)
        case .graphQL(let isOptimistic):
            if isOptimistic { head.status = 200 }
            let response = GraphQLResponse.queued(document, to: operation.body.inlineBytes, isOptimistic: isOptimistic)
            return Reply(head: head, body: .bytes(ByteBuffer(bytes: response.serialized())), trace: trace)
        case .empty: break
        case .bare(let status):
            head.status = status
            head.linkStatus(of: operation)
        case .fixed(let reply):
            head.status = reply.status
            head.linkStatus(of: operation)
            guard !reply.body.isEmpty else {
                head.fields[.contentType] = reply.type
                return Reply(head: head, body: .none(length: nil), trace: trace)
            }
            head.fields[.contentType] = reply.type ?? "text/plain; charset=utf-8"
            return Reply(head: head, body: .bytes(ByteBuffer(string: reply.body)), trace: trace)
        case .s3(let status):
            head.status = status
            if CopiedObject.isMade(by: operation.request) {
                head.fields[.contentType] = "application/xml"
                let document = CopiedObject.document(etag: LocalETag(sequence: operation.sequence).fieldValue, at: operation.acceptedAt)
                return Reply(head: head, body: .bytes(ByteBuffer(string: document)), trace: trace)
            }
        }
        head.fields[.contentType] = nil
        return Reply(head: head, body: .none(length: nil), trace: trace)
    }
}

extension LearnedReplies {
    /// The form of the reply to a write that is queued.
    /// - Parameter isLearned: false if what the upstream answered before does not count.
    func form(for context: RequestContext, isLearned: Bool = true) async -> QueuedReply {
        let (plan, respondsAsync) = (context.plan, context.wishes.respondsAsync)
        var route = plan.route
        if respondsAsync, case .fixed? = route?.offlineResponse { route?.offlineResponse = .accepted }
        let isOfFile = plan.entity?.resource == nil && !respondsAsync && FileWrite(context.original) != nil
        if plan.isTelemetry, !respondsAsync, route?.offlineResponse == nil, let form = await telemetryForm(for: context) { return form }
        var learned: Int?
        if isLearned, !respondsAsync, let upstream = plan.upstream {
            learned = await status(for: WriteRoute(of: context.original, plan: plan), at: upstream.name)
            if learned == nil, plan.entity?.resource?.learned != nil {
                // What was answered before the resource was learned.
                var before = plan
                before.entity = nil
                learned = await status(for: WriteRoute(of: context.original, plan: before), at: upstream.name)
            }
        }
        return QueuedReply(
            to: context.original, route: route, resource: plan.entity?.resource, isOfFile: isOfFile, learned: learned)
    }
}

extension LearnedReplies {
    /// The form of the reply to a telemetry write: the receiver's last answer, else that of its protocol; nil where neither is known.
    private func telemetryForm(for context: RequestContext) async -> QueuedReply? {
        guard let upstream = context.plan.upstream?.name else { return nil }
        let route = WriteRoute(of: context.original, plan: context.plan)
        guard let form = await form(for: route, at: upstream) else { return TelemetryReply.of(context.original).map { .fixed($0) } }
        guard case .fixed(let body) = form.content else {
            // The type of an empty body belongs to the protocol.
            let type = TelemetryReply.of(context.original).flatMap { $0.status == form.status && $0.body.isEmpty ? $0.type : nil }
            return type.map { .fixed(FixedReply(status: form.status, type: $0)) } ?? .bare(status: form.status)
        }
        return .fixed(FixedReply(status: form.status, type: form.type, body: body))
    }
}

extension ResponseHead {
    /// Names the status document of a write in a reply whose `Location` would name what the write has made (RFC 8288).
    fileprivate mutating func linkStatus(of operation: QueuedWrite) {
        fields[.location] = nil
        fields[.link] = "<\(operation.statusPath)>; rel=\"rockpool-operation\""
    }
}

extension Reply {
    /// Names the node that keeps a write for itself while the fleet's database is away (docs/fleet.md#away).
    func naming(_ holder: String?) -> Reply {
        guard let holder, let state = head.fields[.rockpoolState] else { return self }
        var reply = self
        reply.head.fields[.rockpoolState] = "\(state); held=\(holder)"
        return reply
    }
}

extension RoutePlan {
    /// Returns the reason why the body of a queueable write must not wait, unless its route says that it may.
    func obstacle(in body: [UInt8], of request: RequestHead) -> QueueObstacle? {
        guard let obstacle = QueueObstacle.of(request, body: body) else { return nil }
        if route?.queue == .always || isTelemetry { return obstacle.isFinal ? obstacle : nil }
        return obstacle == .graphQL && route?.isReadByBody == true ? nil : obstacle
    }
}
