// Writes that are sent while their client waits, and the answers to them (docs/outbox.md#client-view).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

extension WritePipeline {
    /// Sends a write while its client waits.
    /// - Returns: nil if the upstream of a declared resource has refused the condition that Rockpool added.
    /// - Throws: `TransferFailure`, also where the condition may be refused by an earlier sending of this request.
    func sendLive(_ draft: ReceivedWrite, context: inout RequestContext, upstream: Upstream) async throws -> Reply? {
        var head = draft.head
        if let condition = draft.condition { head.fields[.ifMatch] = condition }
        head.setKey(draft.operation.idempotencyKey, isClients: draft.operation.keyIsClients, for: upstream.idempotency)
        head.acceptReadable(context.plan)
        let isRepeatable = head.method.isIdempotent || upstream.idempotency.honoured == .yes || draft.operation.isTelemetry
        let sentAt = context.exchange.early?.answeredSince ?? cache.moment()
        var answer = try await reads.fetch(head, body: draft.body, for: &context, freshConnection: !isRepeatable)
        try await upstreams.checkOwn(&answer, to: head, upstream: upstream, isLive: true)
        if answer.head.status == 412, let failure = answer.lostBefore {
            answer.body.abandon()
            throw failure
        }
        if draft.condition != nil, answer.head.status == 412 {
            guard context.plan.entity?.resource == nil else {
                answer.body.abandon()
                return nil
            }
            // Nothing is known of merging there: its client is told, and means it if it writes once more.
            ownWrites.sight.note(ResponseHead(status: 412), to: context.request, by: context.viewer)
        }
        if let isEmpty = answer.isEmpty {
            await notifier.replies.note(answer.head, isEmpty: isEmpty, to: context.original, plan: context.plan, at: upstream.name)
        }
        if (200...299).contains(answer.head.status) { notifier.noteEffect(of: draft.operation) }
        var reply = await relay(answer, to: head, body: bytes(of: draft), sentAt: sentAt, context: &context)
        reply.passedWrite = draft.passed(as: answer.request, in: context, to: upstream)
        return reply
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
    /// report a failure, and the body's bytes; `brokeOff` if they ended too early.
    private func collected(
        _ answer: OriginReply, context: RequestContext
    ) async -> (answer: OriginReply, received: [UInt8]?, brokeOff: Bool) {
        let mayRepresent =
            [200, 201].contains(answer.head.status)
            && (MediaType.isJSON(answer.head.fields) || answer.head.fields.contains(.contentLocation))
            && (context.plan.entity?.resource != nil || context.request.method == .put
                || reads.responses.learning.awaitsCreate(context.request, plan: context.plan))
            || context.plan.isTelemetry && (200...202).contains(answer.head.status) && answer.length ?? .max <= AnswerForm.fixedLimit
        guard context.plan.upstream != nil, answer.length ?? 0 <= Int64(Self.answerLimit),
            mayRepresent || AnswerFailure.needsBody(of: answer.head, by: context.plan.success)
        else { return (answer, nil, false) }
        var (answer, bytes) = (answer, ByteBuffer())
        let source = answer.body
        do throws(TransferFailure) {
            while var chunk = try await source.next() {
                bytes.writeBuffer(&chunk)
                guard bytes.readableBytes <= Self.answerLimit else {
                    answer.body = BodyPipe(bytes, then: source)
                    return (answer, nil, false)
                }
            }
        } catch {
            answer.body = BodyPipe(bytes, then: BodyPipe(broken: error))
            return (answer, nil, true)
        }
        answer.body = BodyPipe(whole: bytes)
        return (answer, Array(bytes.readableBytesView), false)
    }

    /// Returns the response to a write. If the response declares itself to be the response to a GET, it is stored (RFC 9110 §9.3.3).
    /// - Parameters:
    ///   - request: the request as it was sent.
    ///   - body: its body; nil if it is not at hand.
    func relay(
        _ answer: OriginReply, to request: RequestHead, body: [UInt8]?, sentAt: Moment, context: inout RequestContext
    ) async -> Reply {
        let (answer, received, brokeOff) = await collected(answer, context: context)
        reads.spaces.keep(answer.head, sentAt: sentAt, for: context)
        // True if another write has invalidated the URL since this one was sent.
        let isOutdated = cache.wasInvalidated(context.request.url, since: sentAt.tick)
        await reads.updates.invalidateEverywhere(after: answer.head, to: context.request)
        let read = received.map { answer.head.readable(ByteBuffer(bytes: $0), upTo: Self.answerLimit) }
        var write = AnsweredWrite(
            request: request, body: body, answer: read?.head ?? answer.head, answerBody: read.map { Array($0.content.readableBytesView) })
        write.success = context.plan.success
        var shown = write
        if answer.isEmpty == true { shown.answerBody = [] }
        await notifier.replies.note(shown, plan: context.plan)
        reads.responses.learning.note(shown, plan: context.plan, partition: context.identity.partition)
        if StatusCode.leavesEffectUnknown(answer.head.status), context.plan.entity?.resource != nil {
            await liveEffects.noteUnknown(context.request, by: context.viewer)
        }
        if brokeOff, context.request.method != .delete, let entity = context.plan.entity, entity.resource != nil, entity.isItem,
            entity.action == nil, let upstream = context.plan.upstream
        {
            write.take(await upstreams.item(after: request, at: upstream))
        }
        await liveEffects.note(
            write, length: context.exchange.bodyLength ?? 0, sentAt: sentAt, plan: context.plan, identity: context.identity,
            program: context.viewer.program)
        if let upstream = context.plan.upstream, context.plan.route?.logout == true, write.endsSession {
            await identities.end(context.identity, at: upstream)
        }
        guard context.request.method == .post, answer.head.fields.contains(.contentLocation), !isOutdated else {
            return Reply(head: answer.head, body: context.bodyOnTheWay(answer), trace: context.trace)
        }
        let fetched = await reads.responses.store(answer, sentAt: cache.moment(), among: [], for: &context, onEnd: {})
        context.trace.cacheStatus = CacheStatus(hit: false, fwd: .method, stored: fetched.stored != nil, detail: fetched.detail)
        return Reply(head: fetched.head, body: fetched.bodyForRequester(in: context), trace: context.trace)
    }
}

extension QueuedWriteDraft {
    /// Records the outcome of a live attempt that preceded queueing, and whether the operation may be sent again automatically.
    /// - Parameters:
    ///   - sentAt: when the attempt began.
    ///   - isRepeatable: true if the attempt named the version that it changes, so that a second attempt is refused after the first has
    ///   taken effect; or if a second effect is nothing to worry about.
    mutating func note(_ failure: TransferFailure, isRepeatable: Bool, context: ReplayContext, sentAt: Moment, now: Timestamp) {
        lastError = failure.proxyErrorName
        guard failure.sent != .no else { return }
        (firstSentAt, begun) = (now, sentAt.tick)
        // The response to a request that must not be sent twice was lost. Its effect is unknown and must be resolved as `uncertain`
        // (docs/outbox.md#wire-rule).
        guard !(request.method.isIdempotent || isRepeatable || context.idempotency.honoured == .yes) else { return }
        state = .uncertain
        reason = .lostAnswer
        nextAttemptAt = context.nextProbe(after: 0, now: now)
    }
}
