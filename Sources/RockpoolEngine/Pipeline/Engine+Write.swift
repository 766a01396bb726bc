// Writes: sent while the upstream answers, taken into the outbox when it cannot, never lost once acknowledged (outbox.md §1).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore

extension Engine {
    /// How long a live write waits for earlier ones of its lane before it is queued behind them (outbox.md §1.4).
    private static let laneWait = Duration.seconds(2)

    /// Answers a write.
    func write(_ job: Job, _ trace: inout Trace) async -> Reply {
        trace.verdict = .pass
        trace.cacheStatus = CacheStatus(hit: false, fwd: .method)
        guard job.plan.queueable, let upstream = job.plan.upstream, job.wishes.policy == .queue else {
            return await pass(job, &trace)
        }
        do {
            switch try await Spool.read(job.exchange, limit: upstream.queue.maxBody, isReachable: job.isReachable, into: data) {
            case .whole(let spooled): return await write(job, spooled, upstream, &trace)
            case .tooLarge(let rest): return await pass(job, as: rest, &trace)
            case .refused(let problem): return refuse(problem, &trace)
            }
        } catch {
            return refuse(Problem(.badRequest, detail: "the request body broke off: \(error.detail)"), &trace)
        }
    }

    private func isReachable(_ upstream: Upstream) -> Bool {
        reachability.machine(of: upstream.name)?.isReachable ?? true
    }

    // MARK: not queued

    /// Forwards a write that may not, or cannot, be queued.
    private func pass(_ job: Job, as body: OutboundRequest.Body? = nil, _ trace: inout Trace) async -> Reply {
        let streamed = job.exchange.body.map { OutboundRequest.Body.stream($0, length: job.exchange.bodyLength) } ?? .none
        let isRepeatable = job.request.method.isIdempotent
        do {
            let sentAt = now()
            let answer = try await fetch(job.request, body ?? streamed, for: job, freshConnection: !isRepeatable, &trace)
            return await relay(answer, sentAt, job, &trace)
        } catch {
            guard job.plan.upstream != nil, error.sent == .no, error.kind != .tls, error.kind != .denied else {
                return unanswered(error, job, &trace, offlineMiss: false)
            }
            noteFailure(error, job, &trace)
            if body != nil, let upstream = job.plan.upstream { return refuse(Spool.tooLarge(upstream.queue.maxBody), &trace) }
            return refuse(
                Problem(
                    .notQueueable, detail: "\(job.request.origin.hostAndPort) cannot be reached and this write may not be queued",
                    upstream: job.plan.upstream?.name, error: error.proxyErrorName, retryAfter: 5), &trace)
        }
    }

    private func refuse(_ problem: Problem, _ trace: inout Trace) -> Reply {
        trace.verdict = .refused
        trace.record(.refused(problem: problem.type))
        return reply(problem, trace)
    }

    // MARK: queueable

    private func write(_ job: Job, _ body: Spool.Whole, _ upstream: Upstream, _ trace: inout Trace) async -> Reply {
        var operation = newOperation(job, body, upstream)
        do {
            if let earlier = try await earlierAnswer(to: operation, trace) {
                body.discard()
                return earlier
            }
            let isFree = job.wishes.respondsAsync ? false : try await laneIsFree(operation.lane, upstream, job)
            guard isFree else {
                noteAbsence(job, &operation, &trace)
                return try await enqueue(operation, body, job, &trace)
            }
        } catch {
            return outboxFailed(error, body, &trace)
        }
        do {
            let answer = try await sendLive(operation, body, job, upstream, &trace)
            body.discard()
            return answer
        } catch let failure as TransferFailure {
            guard failure.kind != .tls, failure.kind != .denied, failure.kind != .protocolError || failure.sent != .no else {
                body.discard()
                return unanswered(failure, job, &trace, offlineMiss: false)
            }
            noteFailure(failure, job, &trace)
            // The client has left: nobody was told anything, and its own retry is on its way.
            guard failure.kind != .cancelled else {
                body.discard()
                return unanswered(failure, job, &trace, offlineMiss: false)
            }
            operation.note(failure, context: ReplayContext(upstream), now: now())
            do { return try await enqueue(operation, body, job, &trace) } catch { return outboxFailed(error, body, &trace) }
        } catch {
            return outboxFailed(error, body, &trace)
        }
    }

    /// A write that is queued because its upstream is known to be away says so, as one that found out itself.
    private func noteAbsence(_ job: Job, _ operation: inout NewOperation, _ trace: inout Trace) {
        guard case .no(let reason) = job.permission else { return }
        let failure = TransferFailure.notTried(reason, lastFailure(job.plan.upstream))
        operation.lastError = failure.proxyErrorName
        noteFailure(failure, job, &trace)
    }

    private func newOperation(_ job: Job, _ body: Spool.Whole, _ upstream: Upstream) -> NewOperation {
        var request = job.request
        let clientKey = request.fields[upstream.idempotency.name].flatMap { IdempotencyKey.parse($0) }
        let id = UUIDv7.make(now: now(), random: (.random(in: 0 ... .max), .random(in: 0 ... .max)))
        request.fields[.expect] = nil
        request.fields[.prefer] = job.wishes.otherPreferences
        request.fields = job.identity.withoutSecrets(request.fields)
        return NewOperation(
            id: id, request: request, body: body.stored, upstream: upstream.name, entity: job.plan.entity?.path,
            lane: Lane.name(
                upstream: upstream.name, entity: laneEntity(job, creating: id), order: upstream.order,
                principal: job.identity.principal),
            idempotencyKey: clientKey ?? UUIDv7.make(now: now(), random: (.random(in: 0 ... .max), .random(in: 0 ... .max))),
            keyIsClients: clientKey != nil, principal: job.identity.principal, priority: job.wishes.priority,
            expiresAt: job.wishes.expiresAt)
    }

    /// The same answer again for a key the client has used; 422 when it now carries another request (outbox.md §1.4).
    private func earlierAnswer(to operation: NewOperation, _ trace: Trace) async throws -> Reply? {
        guard operation.keyIsClients,
            let (earlier, fingerprint) = try await data.operation(clientKey: operation.idempotencyKey, principal: operation.principal)
        else { return nil }
        guard fingerprint == NewOperation.fingerprint(operation.request, body: operation.body) else {
            return reply(Problem(.keyReused, detail: "idempotency key \(operation.idempotencyKey) was used for another request"), trace)
        }
        return accepted(earlier, trace)
    }

    /// A create of a declared resource has a lane of its own: one that dies holds back no other. Where nothing is declared a POST
    /// may be anything: those of one identity to one path stay in order (outbox.md §1.8).
    private func laneEntity(_ job: Job, creating id: String) -> String? {
        guard let entity = job.plan.entity, !entity.isItem else { return job.plan.entity?.path }
        if entity.resource != nil { return "\(entity.path)/\(id)" }
        return job.request.method == .post ? "\(entity.path) \(job.identity.principal ?? "*")" : entity.path
    }

    /// Whether a live write may go now: the upstream answers and nothing of its lane waits. Earlier writes get a moment to leave.
    private func laneIsFree(_ lane: String, _ upstream: Upstream, _ job: Job) async throws -> Bool {
        guard job.isReachable else { return false }
        let deadline = ContinuousClock.now + (job.wishes.wait ?? Self.laneWait)
        while true {
            let version = events.version
            let holders = try await data.openStates(lane: lane, upstream: upstream.name)
            if holders.isEmpty { return job.permission == .trial || isReachable(upstream) }
            guard isReachable(upstream), holders.isSubset(of: [.pending, .inflight]) else { return false }
            guard await events.change(after: version, before: deadline) else { return false }
        }
    }

    private func sendLive(
        _ operation: NewOperation, _ body: Spool.Whole, _ job: Job, _ upstream: Upstream, _ trace: inout Trace
    ) async throws -> Reply {
        var head = job.request
        head.fields[.expect] = nil
        head.fields[.prefer] = job.wishes.otherPreferences
        head.setKey(operation.idempotencyKey, isClients: operation.keyIsClients, upstream.idempotency)
        let isRepeatable = head.method.isIdempotent || upstream.idempotency.honoured == .yes
        let sentAt = now()
        let answer = try await fetch(head, body.outbound, for: job, freshConnection: !isRepeatable, &trace)
        return await relay(answer, sentAt, job, &trace)
    }

    /// The answer to a write on its way; stored where it says that it is what a GET would get (RFC 9110 §9.3.3).
    private func relay(_ answer: OriginReply, _ sentAt: Timestamp, _ job: Job, _ trace: inout Trace) async -> Reply {
        // Another write since then has made it old news.
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

    /// What a write makes of stored responses (RFC 9111 §4.4).
    func invalidate(after answer: ResponseHead, to request: RequestHead) async {
        let urls = Invalidation.targets(request: request, response: answer).flatMap { url in
            // What queries that mean the same are stored under.
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

    private func enqueue(_ operation: NewOperation, _ body: Spool.Whole, _ job: Job, _ trace: inout Trace) async throws -> Reply {
        let stored: Operation
        do {
            try Task.checkCancellation()
            stored = try await data.append(operation)
        } catch DataStoreError.duplicateKey {
            // Another request with the same key came first by a hair.
            if let earlier = try await earlierAnswer(to: operation, trace) {
                body.discard()
                return earlier
            }
            throw DataStoreError.duplicateKey(id: operation.id)
        }
        trace.verdict = .queued
        trace.record(.enqueued(operation: stored.id))
        trace.cacheStatus = CacheStatus(hit: false, fwd: .method, detail: "queued")
        events.tell(.operation(id: stored.id, state: stored.state))
        return await answered(stored, job.wishes, trace)
    }

    /// 202, or with `Prefer: respond-async, wait=N` the real answer when it comes in time (RFC 7240 §4.1, §4.3).
    private func answered(_ operation: Operation, _ wishes: WriteWishes, _ trace: Trace) async -> Reply {
        var reply = accepted(operation, trace)
        guard wishes.respondsAsync else { return reply }
        if let wait = wishes.wait, let settled = await settled(operation.id, within: wait), let result = settled.result {
            reply = Reply(head: result.head, body: .bytes(ByteBuffer(bytes: result.body)), trace: trace)
            reply.head.fields[.rockpoolOperation] = settled.id
            reply.head.fields[.rockpoolState] = settled.state.rawValue
        }
        reply.head.fields[.preferenceApplied] = wishes.wait.map { "respond-async, wait=\($0.components.seconds)" } ?? "respond-async"
        return reply
    }

    /// The operation once the upstream has answered it for good; nil when that takes longer.
    private func settled(_ id: String, within wait: Duration) async -> Operation? {
        let deadline = ContinuousClock.now + wait
        while true {
            let version = events.version
            guard let operation = try? await data.operation(id: id) else { return nil }
            if operation.state.hasEnded || operation.state == .dead || operation.state == .conflicted { return operation }
            guard await events.change(after: version, before: deadline) else { return nil }
        }
    }

    private func outboxFailed(_ error: any Error, _ body: Spool.Whole, _ trace: inout Trace) -> Reply {
        body.discard()
        if case DataStoreError.full = error {
            events.tell(.storage(detail: "outbox full"))
            return refuse(Problem(.outboxFull, detail: "storage.data_limit is reached; nothing of this write was kept"), &trace)
        }
        logger.failed("outbox failed", error)
        return refuse(Problem(.notQueueable, detail: "the outbox could not keep this write: \(error)", retryAfter: 5), &trace)
    }

    /// 202 with the status document (RFC 9110 §15.3.3).
    func accepted(_ operation: Operation, _ trace: Trace) -> Reply {
        var head = ResponseHead(status: 202, fields: [.contentType: "application/json", .cacheControl: "no-store"])
        head.fields[.location] = operation.statusPath
        head.fields[.rockpoolOperation] = operation.id
        head.fields[.rockpoolState] = operation.state.rawValue
        return Reply(head: head, body: .bytes(ByteBuffer(bytes: OperationDocument.json(operation).serialized())), trace: trace)
    }
}

extension NewOperation {
    /// Records what a live attempt showed before the operation came here: whether it may be sent again by itself.
    fileprivate mutating func note(_ failure: TransferFailure, context: ReplayContext, now: Timestamp) {
        lastError = failure.proxyErrorName
        guard failure.sent != .no else { return }
        firstSentAt = now
        // A lost answer to what may not be sent twice: nobody can tell, so somebody has to (outbox.md §2.4).
        guard !(request.method.isIdempotent || context.idempotency.honoured == .yes) else { return }
        state = .uncertain
        reason = .lostAnswer
        nextAttemptAt = now + context.idempotency.maxProcessing
    }
}

extension ReplayContext {
    init(_ upstream: Upstream) { self.init(idempotency: upstream.idempotency, uncertainPolicy: upstream.queue.uncertain) }
}

extension IdempotencySettings {
    var name: HTTPField.Name { HTTPField.Name(header) ?? .idempotencyKey }
}

extension RequestHead {
    /// Puts the operation's key where the upstream looks for it; the client's own goes on as it came.
    mutating func setKey(_ key: String, isClients: Bool, _ settings: IdempotencySettings) {
        if isClients, fields.contains(settings.name) { return }
        guard settings.honoured != .no else { return }
        fields[settings.name] = IdempotencyKey.fieldValue(key, format: settings.format)
    }
}
