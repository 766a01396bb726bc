// One attempt: leased, sent, answered, recorded, in this order whatever happens between (outbox.md §1.3 *wire rule*).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore

extension Replayer {
    /// Bytes of an answer's body that are kept as the operation's result.
    private static let resultLimit = 1 << 20
    /// How long an answer's body may take: its status has already said what happened.
    private static let resultLimitTime = Duration.seconds(10)
    /// Fields of an answer that carry secrets; the status document is read by others than the one who wrote.
    private static let secretFields = ["Set-Cookie", "Set-Cookie2", "WWW-Authenticate", "Authentication-Info", "Proxy-Authenticate"]
        .compactMap { HTTPField.Name($0) }

    /// Sends `operation` once. Nil when no attempt was made.
    func deliver(_ operation: RockpoolCore.Operation) async -> OperationState? {
        do {
            guard let upstream = engine.routes.upstream(named: operation.upstream) else { return nil }
            var head = operation.request
            if let principal = operation.principal {
                guard let secrets = engine.credentials.live(of: principal) else {
                    _ = try await move(operation, to: Disposition(state: .parked, reason: .auth, countsAsAnswered: false))
                    return nil
                }
                for field in secrets { head.fields[values: field.name] = [] }
                for field in secrets { head.fields.append(field) }
            }
            head.setKey(operation.idempotencyKey, isClients: operation.keyIsClients, upstream.idempotency)
            guard let leased = try await engine.data.lease(id: operation.id, now: engine.now()) else { return nil }
            return await attempt(leased, head, upstream)
        } catch {
            engine.logger.failed("replay of \(operation.id)", error)
            hold(operation.id)
            return nil
        }
    }

    private func attempt(_ operation: RockpoolCore.Operation, _ head: RequestHead, _ upstream: Upstream) async -> OperationState? {
        let context = ReplayContext(upstream)
        var outcome: AttemptOutcome
        var received: [UInt8] = []
        do throws(TransferFailure) {
            let answer = try await engine.send(
                head, try body(of: operation), upstream: upstream,
                freshConnection: context.needsFreshConnection(for: operation, now: engine.now()))
            outcome = .answered(answer.head)
            received = await result(answer.body)
        } catch {
            outcome = .failed(error)
        }
        let change = OperationMachine.disposition(
            of: operation, after: outcome, body: received, context: context, now: engine.now(), random: .random(in: 0..<1))
        do {
            return try await record(operation, head, outcome, received, change).state
        } catch {
            // What came of it could not be written: it may have been applied, and that is what the row must say.
            engine.logger.failed("replay of \(operation.id): its outcome could not be recorded", error)
            return try? await engine.data.transition(
                id: operation.id, to: .uncertain, reason: .lostAnswer, from: [.inflight], now: engine.now()
            ).state
        }
    }

    private func body(of operation: RockpoolCore.Operation) throws(TransferFailure) -> OutboundRequest.Body {
        do {
            return OutboundRequest.Body(try engine.data.content(of: operation.body))
        } catch {
            throw TransferFailure(kind: .cancelled, sent: .no, detail: "\(error)")
        }
    }

    private func result(_ body: BodyPipe) async -> [UInt8] {
        let timer = Task {
            try await Task.sleep(for: Self.resultLimitTime)
            body.abandon()
        }
        defer { timer.cancel() }
        return ((try? await body.collect(upTo: Self.resultLimit))?.bytes).map { Array($0.readableBytesView) } ?? []
    }

    private func record(
        _ operation: RockpoolCore.Operation, _ head: RequestHead, _ outcome: AttemptOutcome, _ received: [UInt8], _ change: Disposition
    ) async throws -> RockpoolCore.Operation {
        var result: OperationResult?
        if case .answered(var answer) = outcome {
            for name in Self.secretFields { answer.fields[name] = nil }
            result = OperationResult(head: answer, body: received)
        }
        let finished = try await engine.data.finish(
            id: operation.id, disposition: change, result: result, attempt: AttemptRecord(outcome), now: engine.now())
        if change.isCaptive {
            engine.reachability.record(.portalSeen(detail: change.detail ?? "portal"), for: operation.upstream, now: engine.now())
        }
        if let until = change.pauseUpstreamUntil { pause(operation.upstream, until: until) }
        if change.state == .parked, change.reason == .auth, let principal = operation.principal {
            engine.credentials.forget(principal, refused: head.fields)
        }
        if case .answered(let answer) = outcome { await engine.invalidate(after: answer, to: head) }
        engine.events.tell(.operation(id: finished.id, state: finished.state))
        return finished
    }
}

extension AttemptRecord {
    /// What an attempt showed.
    fileprivate init(_ outcome: AttemptOutcome) {
        switch outcome {
        case .answered(let head): self.init(status: head.status, sent: .yes)
        case .failed(let failure): self.init(error: failure.proxyErrorName, sent: failure.sent)
        }
    }
}
