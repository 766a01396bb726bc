// Answers writes: sends them while the upstream answers, queues them when it does not (docs/outbox.md#overview).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

/// The write pipeline.
package final class WritePipeline: Sendable {
    let data: DataStore
    let cache: CacheStore
    let credentials: Credentials
    let events: EngineEvents
    let reads: ReadPipeline
    let ownWrites: ReadYourWrites
    let effects: OwnWriteEffects
    let identities: KnownIdentities
    let itemsBefore: ItemsBefore
    let upstreams: UpstreamClient
    let renewal: CredentialRenewal
    let notifier: OutboxNotifier
    let documents: OperationDocuments
    let logger: Logger
    let now: @Sendable () -> Timestamp
    /// Client keys whose first request is in progress.
    let keysUnderWay = KeysUnderWay()
    /// One live write at a time for each entity of a client: two that overlapped would both be conditional on the version from before the
    /// first, so that the second would conflict with its own client's change (docs/outbox.md#live-writes).
    let entityTurns = KeyTurns<ClientLane>()
    /// The acknowledgements of equal writes.
    let acknowledgements = Acknowledgements()
    let telemetryNumbers = TelemetryNumbers()
    let traces: LiveTraces
    let liveEffects: LiveEffects

    init(
        data: DataStore, cache: CacheStore, credentials: Credentials, events: EngineEvents,
        reads: ReadPipeline, ownWrites: ReadYourWrites, effects: OwnWriteEffects, identities: KnownIdentities,
        itemsBefore: ItemsBefore, upstreams: UpstreamClient, renewal: CredentialRenewal, notifier: OutboxNotifier,
        documents: OperationDocuments, logger: Logger, now: @escaping @Sendable () -> Timestamp
    ) {
        self.data = data
        self.cache = cache
        self.credentials = credentials
        self.events = events
        self.reads = reads
        self.ownWrites = ownWrites
        self.effects = effects
        self.identities = identities
        self.itemsBefore = itemsBefore
        self.upstreams = upstreams
        self.renewal = renewal
        self.notifier = notifier
        self.documents = documents
        self.logger = logger
        self.now = now
        traces = LiveTraces(data: data, logger: logger)
        liveEffects = LiveEffects(
            updates: reads.updates, effects: effects, overlay: notifier.overlay, localIDs: data.localIDs,
            moment: reads.updates.cache.moment)
    }
}

/// Numbers that rise with every telemetry write, also over a restart: microseconds, or one more than the last.
final class TelemetryNumbers: Sendable {
    private let last = Mutex<Int64>(0)

    func next(at moment: Timestamp) -> Int64 {
        last.withLock { last in
            last = max(last.addedClamped(1), moment.milliseconds.multipliedClamped(by: 1000))
            return last
        }
    }
}

/// The acknowledgements of equal writes of each client (docs/outbox.md#floods).
final class Acknowledgements: Sendable {
    private let limit = Mutex(AcknowledgementLimit())

    /// The refusal of a write that its client repeats too fast; nil counts the acknowledgement that it is about to get.
    func problem(of operation: QueuedWriteDraft, from exchange: Exchange, now: Timestamp) -> Problem? {
        let client = operation.principal ?? exchange.clientAddress
        guard let wait = limit.withLock({ $0.admit(operation.fingerprint, of: client, now: now) }) else { return nil }
        let (count, seconds) = (AcknowledgementLimit.count, AcknowledgementLimit.window.milliseconds / 1000)
        return Problem(
            .tooManyRepeats,
            detail: "\(count) equal writes of this client were acknowledged within \(seconds) seconds; this one was not queued",
            upstream: operation.upstream, retryAfter: Int(clamping: max(1, (wait.milliseconds + 999) / 1000)))
    }
}

// MARK: - Writes that may not wait

/// Writes that may not, or cannot, be queued: forwarded or refused (docs/outbox.md#overview).
extension WritePipeline {
    /// Maximum length in bytes of an unqueued body that is searched for local ids.
    private static let scanLimit = Int.mib(1)

    func refuseUnmapped(_ context: inout RequestContext) -> Reply {
        refuse(
            Problem(.notQueueable, detail: "it names what its upstream has none of yet, and may not wait", retryAfter: 5), context: &context
        )
    }

    /// Forwards a write that may not be queued, with its local ids replaced by the server's.
    func passSubstituted(_ context: inout RequestContext) async -> Reply {
        guard !data.localIDs.isEmpty, let length = context.exchange.bodyLength, length <= Self.scanLimit else {
            return await pass(&context)
        }
        do {
            guard let bytes = try await context.exchange.collected(upTo: Self.scanLimit) else { return await pass(&context) }
            return await pass(&context, as: try substituted(Array(bytes.readableBytesView), for: context))
        } catch is UnmappedLocalIDs {
            return refuseUnmapped(&context)
        } catch {
            let problem = (error as? TransferFailure).map { Exchange.problem(after: $0) }
            return refuse(problem ?? Problem(.badRequest, detail: "the request body broke off"), context: &context)
        }
    }

    /// Returns a body with its local ids replaced by the server's.
    private func substituted(_ bytes: [UInt8], for context: RequestContext) throws -> OutboundRequest.Body {
        let replaced = try data.localIDs.substituted(context.request, bytes).body
        return replaced.isEmpty ? OutboundRequest.Body.none : .bytes(ByteBuffer(bytes: replaced))
    }

    /// Forwards a write that was read whole before its body turned out to be none that may wait.
    func passUnqueued(
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
        let reason = obstacle?.reason(for: context.request) ?? "this write may not be queued"
        return Problem(
            .notQueueable, detail: "\(context.request.origin.hostAndPort) cannot be reached and \(reason)",
            upstream: context.plan.upstream?.name, retryAfter: 5)
    }

    /// Forwards a write that may not, or cannot, be queued.
    /// - Parameters:
    ///   - problem: The reason why the write cannot be queued; the reply if its upstream is unreachable.
    ///   - held: The same body; the write is queued after all if its upstream is unreachable and has taken none of it.
    func pass(
        _ context: inout RequestContext, as body: OutboundRequest.Body? = nil, orElse problem: Problem? = nil, held: HeldBody? = nil
    ) async -> Reply {
        let streamed = context.exchange.body.map { OutboundRequest.Body.stream($0, length: context.exchange.bodyLength) } ?? .none
        let isRepeatable = context.request.method.isIdempotent
        do throws(TransferFailure) {
            if let upstream = context.plan.upstream, context.isReachable, !upstreams.isTrusted(upstream) {
                throw TransferFailure.notTried(.captive, upstreams.lastFailure(upstream))
            }
            let sentAt = cache.moment()
            var head = context.request
            head.acceptReadable(context.plan)
            let answer = try await reads.fetch(head, body: body ?? streamed, for: &context, freshConnection: !isRepeatable)
            held?.settle()
            let bytes: [UInt8]? =
                switch body {
                case .bytes(let bytes)?: Array(bytes.readableBytesView)
                case nil where context.exchange.body == nil: []
                default: nil
                }
            return await relay(answer, to: context.request, body: bytes, sentAt: sentAt, context: &context)
        } catch {
            if error.sent != .no, context.plan.entity?.resource != nil {
                await liveEffects.noteUnknown(context.request, by: context.viewer)
            }
            guard let upstream = context.plan.upstream, error.sent == .no, error.kind != .tls, error.kind != .denied else {
                held?.settle()
                return context.unanswered(error, offlineMiss: false)
            }
            context.noteFailure(error)
            if let held, held.takeBack() {
                switch try? await Spool.keep(held, limit: upstream.queue.maxBody, into: data) {
                case .whole(let body)?: return await write(&context, body: body, upstream: upstream)
                case .refused(let problem)?: return refuse(problem, context: &context)
                case .passing?, nil: return refuse(Problem(.badRequest, detail: "the request body broke off"), context: &context)
                }
            }
            held?.settle()
            let route = context.plan.route
            let mayNever = route?.queue == .never || route?.read == true || context.wishes.policy != .queue
            var refusal = problem ?? unqueued(because: mayNever ? nil : QueueObstacle.of(context.request), for: context)
            if let reason = context.plan.obstacleToQueueing, problem == nil { refusal.detail += ": \(reason)" }
            if refusal.type == ProblemType.notQueueable.rawValue { refusal.error = error.proxyErrorName }
            return refuse(refusal, context: &context)
        }
    }

    func refuse(_ problem: Problem, context: inout RequestContext) -> Reply {
        context.trace.verdict = .refused
        if problem.type == ProblemType.outboxFull.rawValue { notifier.refusedWrites.note(problem.detail, now: now(), logger: logger) }
        context.trace.record(.refused(problem: problem.type))
        return Reply(problem, context.trace)
    }
}
