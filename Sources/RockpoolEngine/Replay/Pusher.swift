// Sends queued writes of one resource in one request, with a separate outcome for each (docs/guide/sync.md;
// docs/reference/configuration.md#sync `sync.push`).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

/// Sends batches for the replayer, which selects operations at the front of free lanes. The wire rule applies to each operation of a batch
/// as to one sent alone: leased, sent, answered, recorded (docs/outbox.md#wire-rule).
final class Pusher: Sendable {
    /// Operations of one resource and one principal, sent in one request.
    struct Batch: Sendable {
        let upstream: Upstream
        let path: String
        let format: CompiledBatchFormat
        let operations: [OperationSummary]

        init(upstream: Upstream, path: String, operations: [OperationSummary]) {
            (self.upstream, self.path, self.operations) = (upstream, path, operations)
            format = CompiledBatchFormat(BatchFormat(of: upstream, path: path))
        }
    }

    /// The result of a batch.
    struct Outcome: Sendable {
        /// New states by operation id; operations that were not sent are missing.
        var states: [String: OperationState] = [:]
        /// What the answers say about the route, by operation id.
        var signs: [String: RouteSign] = [:]
        /// Until when the clients of these operations wait (429, 503), by the ids.
        var pauses: [String: Timestamp] = [:]
    }

    /// Maximum size in bytes of a batch's response.
    private static let answerLimit = Int.mib(4)
    private static let singlesLimit = 10_000
    /// The time for which an upstream that refused a batch receives single writes only.
    private static let refusalTime = TimeSpan.minutes(10)

    private let data: DataStore
    private let active: ActiveConfiguration
    private let reachability: ReachabilityTable
    private let upstreams: UpstreamClient
    private let outbound: OutboundWrites
    private let credentials: Credentials
    private let notifier: OutboxNotifier
    private let updates: EntryUpdates
    private let effects: OwnWriteEffects
    private let logger: Logger
    private let now: @Sendable () -> Timestamp
    private let refusals = Mutex<[String: Timestamp]>([:])
    /// Ids of operations that cannot be sent in a batch.
    private let singles = Mutex<Set<String>>([])

    init(
        data: DataStore, active: ActiveConfiguration, reachability: ReachabilityTable, upstreams: UpstreamClient, outbound: OutboundWrites,
        credentials: Credentials, notifier: OutboxNotifier, updates: EntryUpdates, effects: OwnWriteEffects, logger: Logger,
        now: @escaping @Sendable () -> Timestamp
    ) {
        self.data = data
        self.active = active
        self.reachability = reachability
        self.upstreams = upstreams
        self.outbound = outbound
        self.credentials = credentials
        self.notifier = notifier
        self.updates = updates
        self.effects = effects
        self.logger = logger
        self.now = now
    }

    /// Returns the path for a batch with this operation; nil when the operation is sent alone.
    func path(of operation: OperationSummary) -> String? {
        // A node of a fleet sends what it can authenticate (`FleetDuty.permits`).
        guard data.fleet == nil, let upstream = active.routes.upstream(named: operation.upstream), let collection = operation.collection,
            // After a lost response the write must be compared with the upstream's state, which needs a request of its own.
            operation.lostAt == nil, !singles.withLock({ $0.contains(operation.id) })
        else { return nil }
        let request = RequestHead(method: .get, origin: upstream.origin, target: collection, fields: [:])
        guard let path = active.routes.plan(for: request).entity?.resource?.sync?.push else { return nil }
        return isRefused(upstream.name, path: path) ? nil : path
    }

    private func isRefused(_ upstream: String, path: String) -> Bool {
        refusals.withLock { $0["\(upstream)|\(path)"] }.map { $0 > now() } ?? false
    }

    /// Sends a batch once. Operations that could not be leased, read or converted to JSON are left for single sending.
    func deliver(_ batch: Batch) async -> Outcome {
        var leased: [QueuedWrite] = []
        var members: [JSONValue] = []
        // Of the batch; operations with others, such as the cookies of another user behind one `Authorization`, are sent alone.
        var secrets: HTTPFields?
        for id in batch.operations.map(\.id) {
            do {
                guard var taken = try await data.lease(id: id, now: now()) else { continue }
                do throws(DispatchBlocked) {
                    let outgoing = try await outbound.outgoing(taken, to: batch.upstream)
                    taken.request = outgoing.head
                    let own = credentials.identity(of: taken.request, rule: batch.upstream.identity).secrets
                    if secrets ?? own == own, let bytes = outgoing.body.inMemory, bytes.count <= BatchPush.bodyLimit,
                        let member = BatchPush.member(taken, body: bytes, format: batch.format)
                    {
                        leased.append(taken)
                        members.append(member)
                        secrets = own
                    } else {
                        sendAlone(id)
                        await giveBack(taken, as: Disposition(state: .pending, nextAttemptAt: now(), countsAsAnswered: false))
                    }
                } catch {
                    await giveBack(taken, as: error.disposition)
                }
            } catch {
                logger.failed("push of \(id)", error: error)
                sendAlone(id)
            }
        }
        if leased.isEmpty { return Outcome() }
        let sentAt = data.moment()
        let head = head(of: batch, with: secrets ?? [:])
        let answer = await send(head, body: BatchPush.body(of: members, format: batch.format), operations: leased, batch: batch)
        if case .refused = answer.verdict {
            refusals.withLock { $0["\(batch.upstream.name)|\(batch.path)"] = now() + Self.refusalTime }
        }
        var result = Outcome()
        for operation in leased { await record(operation, after: answer, batch: batch, sentAt: sentAt, result: &result) }
        return result
    }

    // MARK: sending

    /// Builds the head of the batch request, with the credential of its operations.
    private func head(of batch: Batch, with secrets: HTTPFields) -> RequestHead {
        var fields: HTTPFields = [.accept: "application/json", .contentType: "application/json"]
        for field in secrets { fields.append(field) }
        return RequestHead(method: .post, origin: batch.upstream.origin, target: batch.path, fields: fields)
    }

    private func sendAlone(_ id: String) {
        singles.withLock { singles in
            if singles.count >= Self.singlesLimit { singles.removeAll() }
            singles.insert(id)
        }
    }

    private func giveBack(_ operation: QueuedWrite, as change: Disposition) async {
        let finished = try? await data.finish(
            id: operation.id, disposition: change, result: nil, attempt: AttemptRecord(error: "not_batched", sent: .no), now: now())
        if let finished { notifier.tell(finished) }
    }

    private func send(_ head: RequestHead, body: [UInt8], operations: [QueuedWrite], batch: Batch) async -> BatchAnswer {
        let context = ReplayContext(batch.upstream)
        let isFresh = operations.contains { context.needsFreshConnection(for: $0, now: now()) }
        do throws(TransferFailure) {
            let answer = try await underLease(of: data, for: operations.map(\.sequence)) { () throws(TransferFailure) in
                try await self.upstreams.send(
                    head, body: .bytes(ByteBuffer(bytes: body)), upstream: batch.upstream, freshConnection: isFresh)
            }
            guard await upstreams.isConfirmed(answer.head, upstream: batch.upstream) else {
                answer.body.abandon()
                throw .unconfirmed
            }
            // An incomplete body is discarded: the response then counts as lost for every operation.
            let (bytes, isWhole) = try await answer.body.collect(upTo: Self.answerLimit)
            return BatchAnswer(.answered(answer.head), body: isWhole ? Array(bytes.readableBytesView) : [], format: batch.format)
        } catch {
            // A body that fails after its head counts as a lost response as well.
            return BatchAnswer(.failed(error), body: [])
        }
    }

    // MARK: recording

    private func record(
        _ operation: QueuedWrite, after batchAnswer: BatchAnswer, batch: Batch, sentAt: Moment, result: inout Outcome
    ) async {
        var context = ReplayContext(batch.upstream)
        context.reading.success = active.routes.plan(for: operation.request).success
        var (outcome, answer, change) = BatchPush.disposition(
            of: operation, after: batchAnswer, context: context, now: now(), random: .random(in: 0..<1))
        if change.state == .delivered, operation.isCreate, case .answered(let head) = outcome {
            let resource = active.routes.plan(for: operation.request).entity?.resource
            change.mapping = await outbound.reads.lookup.created(
                by: head, json: try? JSONValue.parse(answer), to: operation.request, resource: resource, partition: operation.principal)
        }
        result.signs[operation.id] = RouteSign(outcome, body: answer, disposition: change)
        do {
            let finished = try await notifier.effectsUnderWay.during(operation) {
                let finished = try await data.finish(
                    id: operation.id, disposition: change, result: outcome.result(body: answer), attempt: outcome.attempt,
                    now: now())
                result.states[finished.id] = finished.state
                result.pauses[operation.id] = change.pauseUpstreamUntil
                await follow(change, outcome: outcome, operation: operation, batch: batch)
                if finished.state == .delivered, case .answered(let head) = outcome {
                    let sent = (try? data.content(of: operation.body).bytes()) ?? nil
                    let write = AnsweredWrite(request: operation.request, body: sent, answer: head, answerBody: answer)
                    let identity = credentials.identity(of: operation.request, rule: batch.upstream.identity)
                    await effects.note(
                        write, by: Viewer(partition: identity.partition, program: operation.viewer), sentAt: sentAt)
                }
                return finished
            }
            notifier.tell(finished)
        } catch {
            // The outcome could not be stored. The write may have been applied, so the row becomes uncertain.
            logger.failed("push of \(operation.id): its outcome could not be recorded", error: error)
            let state = try? await data.transition(
                id: operation.id, to: .uncertain, reason: .lostAnswer, from: [.inflight], now: now()
            ).state
            result.states[operation.id] = state
        }
    }

    /// Applies the effects of an outcome outside its row: portal, refused credential, stale cache entries, refused batches.
    private func follow(
        _ change: Disposition, outcome: AttemptOutcome, operation: QueuedWrite, batch: Batch
    ) async {
        let upstream = batch.upstream.name
        if change.isCaptive {
            reachability.record(.portalSeen(detail: change.detail ?? "portal"), for: upstream, now: now())
        }
        if change.state == .parked, change.reason == .auth, let principal = operation.principal {
            if let own = operation.ownCookies(at: batch.upstream) { credentials.forgetBeside(own) }
            await credentials.forget(principal, refused: operation.request.fields)
        }
        guard case .answered(let answer) = outcome else { return }
        if change.state == .delivered { await updates.invalidate(after: answer, to: operation.request) }
    }
}
