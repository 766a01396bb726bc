// Writes that are sent while their client waits, and the answers to them (docs/outbox.md#client-view).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

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
        answer.body = BodyPipe(whole: bytes, trailers: source.trailers)
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

// MARK: - Effects

/// Works answered live writes into the cache and the listings of files (docs/outbox.md#effects).
struct LiveEffects: Sendable {
    let updates: EntryUpdates
    let effects: OwnWriteEffects
    let overlay: WriteOverlay
    let localIDs: LocalIDTable
    /// Now, by the clock and in the order of ticks.
    let moment: @Sendable () -> Moment

    /// Notes an answer with a body that nothing depends on, and invalidates what it makes out of date.
    /// - Parameter request: the request as the pipeline works with it.
    func note(
        _ answer: ResponseHead, to request: RequestHead, body: [UInt8], sentAt: Moment, plan: RoutePlan, identity: Identity
    ) async {
        await updates.invalidateEverywhere(after: answer, to: request)
        var write = AnsweredWrite(request: request, body: body, answer: answer, answerBody: nil)
        write.success = plan.success
        await note(write, length: Int64(body.count), sentAt: sentAt, plan: plan, identity: identity)
    }

    /// - Parameters:
    ///   - length: of the request's body, if that is not at hand.
    ///   - program: that which wrote; nil where it is not known.
    func note(
        _ write: AnsweredWrite, length: Int64, sentAt: Moment, plan: RoutePlan, identity: Identity, program: Viewer.Program? = nil
    ) async {
        guard !plan.isTelemetry else { return }
        await effects.note(write, by: Viewer(partition: identity.partition, program: program), sentAt: sentAt)
        if write.outcome != .none { tell(write.request, partition: identity.partition) }
        guard let upstream = plan.upstream?.name else { return }
        if let entity = plan.entity, entity.resource != nil {
            guard [.applied, .absent].contains(write.outcome),
                case let (collection?, id?) = entity.names({ localIDs.alias(upstream: upstream, collection: $0, id: $1) })
            else { return }
            return overlay.notePassed(
                upstream: upstream, collection: collection, entityID: id, principal: identity.principal, at: moment().tick)
        }
        overlay.files.note(
            write.request, answer: write.answer, length: write.body.map { Int64($0.count) } ?? length, upstream: upstream,
            principal: identity.principal, at: moment())
    }

    /// Tells the other nodes of a fleet where their copies may lack the write.
    private func tell(_ request: RequestHead, partition: String?) {
        updates.news.tell(
            [request.url, WebDAVEffect.destination(of: request).map { request.origin.url + $0 }].compactMap(\.self)
                .map { .near($0, partition: partition ?? "") })
    }

    /// Notes that a write may have taken effect: what is stored counts as older, and the version that its client has seen is not known any
    /// more, so that the next write is not conditional on it.
    func noteUnknown(_ request: RequestHead, by viewer: Viewer) async {
        // In a task of its own, because that of a client that has left is cancelled.
        await Task {
            let head = ResponseHead(status: 200)
            await updates.invalidateEverywhere(after: head, to: request)
            var write = AnsweredWrite(request: request, body: nil, answer: head, answerBody: nil)
            write.evidence = .nothing
            await effects.note(write, by: viewer, sentAt: moment())
            tell(request, partition: viewer.partition)
        }.value
    }
}

// MARK: - Records

/// Records live writes from before their bytes are sent, so that those under way at a crash are uncertain afterwards
/// (docs/outbox.md#live-writes).
final class LiveTraces: Sendable {
    private let data: DataStore
    private let logger: Logger
    /// True while live writes cannot be recorded.
    private let isFailing = Atomic(false)
    private let isCutOff = Atomic(false)

    init(data: DataStore, logger: Logger) {
        self.data = data
        self.logger = logger
    }

    /// Records a write that is about to be sent live.
    /// - Parameter share: the share of the outbox that its operation would count against.
    /// - Returns: nil if it cannot be recorded. The write is sent nevertheless: it is not acknowledged yet. The log has one line about it.
    func record(_ draft: ReceivedWrite, share: OutboxShare) async -> LiveWriteTrace? {
        await withCheckedContinuation { continuation in record(draft, share: share) { continuation.resume(returning: $0) } }
    }

    /// Records a write, as above, for a caller without a task.
    /// - Parameter answer: called once; on any thread.
    func record(_ draft: ReceivedWrite, share: OutboxShare, answer: @escaping @Sendable (LiveWriteTrace?) -> Void) {
        var operation = draft.operation
        operation.share = share
        // A later attempt carries the condition of this one.
        operation.baseETag = draft.condition
        data.record(live: operation) { [self] result in
            switch result {
            case .success(let trace):
                if isFailing.exchange(false, ordering: .relaxed) { logger.notice("live writes are recorded again") }
                answer(trace)
            case .failure(let error):
                if !isFailing.exchange(true, ordering: .relaxed) {
                    logger.warning(
                        "live writes cannot be recorded; they are sent, and a crash meanwhile leaves no trace of them",
                        metadata: ["error": "\(error)"])
                }
                answer(nil)
            }
        }
    }

    /// Notes that the server closes the connections of what is still under way: from now on their clients have not left, they were left.
    func cutOff() { isCutOff.store(true, ordering: .relaxed) }

    /// Ends the record of a write whose client has left, so that `trace` is nil. Of a write that was cut off it stays, and makes the write
    /// uncertain at the next start.
    func abandon(_ trace: inout LiveWriteTrace?) {
        if !isCutOff.load(ordering: .relaxed) { end(trace) }
        trace = nil
    }

    /// Ends a record, because the client gets an answer. No effect if the write was queued.
    func end(_ trace: LiveWriteTrace?) {
        if let trace { data.end(trace) }
    }
}
