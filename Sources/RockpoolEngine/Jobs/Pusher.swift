// Queued writes of one resource in one request, each with an outcome of its own (docs/guide/sync.md; docs/reference/configuration.md#sync
// `sync.push`).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

/// Sends batches for the replayer, which says what may go: heads of free lanes. The wire rule holds for each operation of a batch as
/// for one sent alone: leased, sent, answered, recorded (docs/outbox.md#wire-rule).
final class Pusher: Sendable {
    /// Operations that go together: of one resource and one identity.
    struct Batch: Sendable {
        let upstream: Upstream
        let path: String
        let operations: [OperationSummary]
    }

    /// What came of a batch.
    struct Outcome: Sendable {
        /// By operation id; those that were not sent are missing.
        var states: [String: OperationState] = [:]
        /// Until when nothing more goes to the upstream (429, 503).
        var pauseUntil: Timestamp?
    }

    /// Bytes of a batch's answer.
    private static let answerLimit = 4 << 20
    private static let singlesLimit = 10_000
    /// How long an upstream that refused a batch is sent single writes only.
    private static let refusalTime = TimeSpan.minutes(10)

    private let engine: Engine
    private let refusals = Mutex<[String: Timestamp]>([:])
    /// Operations that cannot go in a batch, by id.
    private let singles = Mutex<Set<String>>([])

    init(engine: Engine) { self.engine = engine }

    /// Where a batch of operations like this one goes; nil when it is sent alone.
    func path(of operation: OperationSummary) -> String? {
        guard let upstream = engine.routes.upstream(named: operation.upstream), let collection = operation.collection,
            // One whose answer was lost is compared with what the upstream has, by itself.
            operation.lostAt == nil, !singles.withLock({ $0.contains(operation.id) })
        else { return nil }
        let request = RequestHead(method: .get, origin: upstream.origin, target: collection, fields: [:])
        guard let path = engine.routes.plan(for: request).entity?.resource?.sync?.push else { return nil }
        return isRefused(upstream.name, path) ? nil : path
    }

    private func isRefused(_ upstream: String, _ path: String) -> Bool {
        refusals.withLock { $0["\(upstream)|\(path)"] }.map { $0 > engine.now() } ?? false
    }

    /// Sends a batch once. Operations that could not be leased, read or put into JSON are left as they are, for single sending.
    func deliver(_ batch: Batch) async -> Outcome {
        var leased: [RockpoolCore.Operation] = []
        var members: [JSONValue] = []
        for id in batch.operations.map(\.id) {
            do {
                guard var taken = try await engine.data.lease(id: id, now: engine.now()) else { continue }
                do throws(Unsendable) {
                    let outgoing = try await engine.outgoing(taken, to: batch.upstream)
                    taken.request = outgoing.head
                    if let bytes = outgoing.body.inMemory, bytes.count <= BatchPush.bodyLimit,
                        let member = BatchPush.member(taken, body: bytes)
                    {
                        leased.append(taken)
                        members.append(member)
                    } else {
                        sendAlone(id)
                        await giveBack(taken, Disposition(state: .pending, nextAttemptAt: engine.now(), countsAsAnswered: false))
                    }
                } catch {
                    await giveBack(taken, error.disposition)
                }
            } catch {
                engine.logger.failed("push of \(id)", error)
                sendAlone(id)
            }
        }
        guard let first = leased.first else { return Outcome() }
        let (outcome, body) = await send(head(of: batch, as: first), BatchPush.body(of: members), leased, batch)
        var result = Outcome()
        for operation in leased { await record(operation, after: outcome, body, batch, &result) }
        return result
    }

    // MARK: sending

    /// With the credential that its operations were prepared with.
    private func head(of batch: Batch, as operation: RockpoolCore.Operation) -> RequestHead {
        var fields: HTTPFields = [.accept: "application/json", .contentType: "application/json"]
        let secrets = engine.credentials.identity(of: operation.request, rule: batch.upstream.identity).secrets
        for field in secrets { fields.append(field) }
        return RequestHead(method: .post, origin: batch.upstream.origin, target: batch.path, fields: fields)
    }

    private func sendAlone(_ id: String) {
        singles.withLock { singles in
            if singles.count >= Self.singlesLimit { singles.removeAll() }
            singles.insert(id)
        }
    }

    private func giveBack(_ operation: RockpoolCore.Operation, _ change: Disposition) async {
        let finished = try? await engine.data.finish(
            id: operation.id, disposition: change, result: nil, attempt: AttemptRecord(error: "not_batched", sent: .no), now: engine.now())
        if let finished { engine.tell(finished) }
    }

    private func send(
        _ head: RequestHead, _ body: [UInt8], _ operations: [RockpoolCore.Operation], _ batch: Batch
    ) async -> (AttemptOutcome, [UInt8]) {
        let context = ReplayContext(batch.upstream)
        let isFresh = operations.contains { context.needsFreshConnection(for: $0, now: engine.now()) }
        do throws(TransferFailure) {
            let answer = try await engine.send(head, .bytes(ByteBuffer(bytes: body)), upstream: batch.upstream, freshConnection: isFresh)
            guard await engine.isConfirmed(answer.head, batch.upstream) else {
                answer.body.abandon()
                throw .unconfirmed
            }
            // A body that breaks off says nothing of any operation, as if it had not come.
            let (bytes, isWhole) = try await answer.body.collect(upTo: Self.answerLimit)
            return (.answered(answer.head), isWhole ? Array(bytes.readableBytesView) : [])
        } catch {
            // Its head may have come: the request has left in any case.
            return (.failed(error), [])
        }
    }

    // MARK: recording

    private func record(
        _ operation: RockpoolCore.Operation, after batchOutcome: AttemptOutcome, _ body: [UInt8], _ batch: Batch,
        _ result: inout Outcome
    ) async {
        var (outcome, answer, change) = BatchPush.disposition(
            of: operation, after: batchOutcome, body: body, context: ReplayContext(batch.upstream), now: engine.now(),
            random: .random(in: 0..<1))
        if change.state == .delivered, operation.localID != nil, case .answered(let head) = outcome {
            let resource = engine.routes.plan(for: operation.request).entity?.resource
            change.mapping = ServerID.inAnswer(head, body: answer, to: operation.request, resource: resource)
        }
        do {
            let finished = try await engine.data.finish(
                id: operation.id, disposition: change, result: outcome.result(body: answer), attempt: outcome.attempt,
                now: engine.now())
            result.states[finished.id] = finished.state
            if let until = change.pauseUpstreamUntil { result.pauseUntil = max(result.pauseUntil ?? until, until) }
            await follow(change, outcome, operation, batch)
            engine.tell(finished)
        } catch {
            // What came of it could not be written: it may have been applied, and that is what the row must say.
            engine.logger.failed("push of \(operation.id): its outcome could not be recorded", error)
            let state = try? await engine.data.transition(
                id: operation.id, to: .uncertain, reason: .lostAnswer, from: [.inflight], now: engine.now()
            ).state
            result.states[operation.id] = state
        }
    }

    /// What an outcome means beside the row.
    private func follow(
        _ change: Disposition, _ outcome: AttemptOutcome, _ operation: RockpoolCore.Operation, _ batch: Batch
    ) async {
        let upstream = batch.upstream.name
        if change.isCaptive {
            engine.reachability.record(.portalSeen(detail: change.detail ?? "portal"), for: upstream, now: engine.now())
        }
        if change.state == .parked, change.reason == .auth, let principal = operation.principal {
            await engine.credentials.forget(principal, refused: operation.request.fields)
        }
        guard case .answered(let answer) = outcome else { return }
        if change.state == .delivered { await engine.invalidate(after: answer, to: operation.request) }
        if change.state == .pending, !change.countsAsAnswered, case .refused = BatchPush.verdict(answer, body: []) {
            refusals.withLock { $0["\(upstream)|\(batch.path)"] = engine.now() + Self.refusalTime }
        }
    }
}
