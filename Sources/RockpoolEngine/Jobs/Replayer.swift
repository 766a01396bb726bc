// Sends queued writes once their upstream answers: in order within a lane, lanes side by side (outbox.md §1.3, §1.8).
import HTTPTypes
import Logging
import NIOCore
package import RockpoolCore
import RockpoolStore
import ServiceLifecycle
import Synchronization

/// Delivers the outbox. What an answer means is `OperationMachine`'s to say; this only sends and records.
package final class Replayer: Service {
    /// What one pass did.
    package struct Report: Equatable, Sendable {
        package var sent = 0
        package var delivered = 0
        /// When the next operation becomes due by time; nil when none waits for time.
        package var nextDue: Timestamp?
    }

    /// Bytes of an answer's body that are kept as the operation's result.
    private static let resultLimit = 1 << 20
    /// Operations under way at once.
    private static let parallel = 32

    private let engine: Engine
    private let pauses = Mutex<[String: Timestamp]>([:])
    private let waiting = Mutex<Set<String>>([])

    package init(engine: Engine) { self.engine = engine }

    /// Whether an operation waits for `upstream`: then it is worth a probe.
    package func somethingWaits(for upstream: String) -> Bool { waiting.withLock { $0.contains(upstream) } }

    /// Replays whenever something has changed or becomes due, until cancelled.
    package func run() async throws {
        await cancelWhenGracefulShutdown { await self.loop() }
    }

    private func loop() async {
        while !Task.isCancelled {
            let version = engine.events.version
            let report = await runOnce()
            let idle = TimeSpan.seconds(1)
            let wait = report.nextDue.map { min(max($0 - engine.now(), .milliseconds(10)), idle) } ?? idle
            _ = await engine.events.change(after: version, before: .now + .milliseconds(wait.milliseconds))
        }
    }

    /// Sends everything that is ready now, and what becomes ready by that.
    package func runOnce() async -> Report {
        var report = Report()
        do {
            while !Task.isCancelled {
                let open = try await settle(try await engine.data.openOperations())
                let summaries = open.map { OperationSummary($0) }
                waiting.withLock { $0 = Set(open.lazy.filter { $0.state == .pending }.map(\.upstream)) }
                report.nextDue = ReplayOrder.nextDue(summaries.filter { mayGo($0.upstream) })
                let byID = Dictionary(uniqueKeysWithValues: open.map { ($0.id, $0) })
                let ready = ReplayOrder.ready(summaries, now: engine.now()).compactMap { byID[$0] }
                let batch = ready.filter { mayGo($0.upstream) }.prefix(Self.parallel)
                let outcomes = await withTaskGroup(of: OperationState?.self) { group in
                    for operation in batch { group.addTask { await self.deliver(operation) } }
                    return await group.reduce(into: []) { $0.append($1) }
                }
                let sent = outcomes.compactMap { $0 }
                report.sent += sent.count
                report.delivered += sent.count { $0 == .delivered }
                if sent.isEmpty { break }
            }
        } catch {
            engine.logger.error("replay: the outbox cannot be read: \(error)")
        }
        return report
    }

    private func mayGo(_ upstream: String) -> Bool {
        if let until = pauses.withLock({ $0[upstream] }), until > engine.now() { return false }
        return engine.reachability.machine(of: upstream)?.isReachable ?? false
    }

    // MARK: before sending

    /// Ends what has expired, and decides about what a crash or a lost answer left open.
    private func settle(_ open: [Operation]) async throws -> [Operation] {
        var settled: [Operation] = []
        for operation in open {
            let context = engine.routes.upstream(named: operation.upstream).map { ReplayContext($0) }
            let change =
                OperationMachine.expiry(of: operation, now: engine.now())
                ?? context.flatMap { OperationMachine.settle(operation, context: $0, now: engine.now()) } ?? awakened(operation)
            if let change { settled.append(try await move(operation, to: change)) } else { settled.append(operation) }
        }
        return settled
    }

    /// A parked operation whose identity has shown a live credential since.
    private func awakened(_ operation: Operation) -> Disposition? {
        guard operation.state == .parked, operation.reason == .auth, let principal = operation.principal,
            engine.credentials.live(of: principal) != nil
        else { return nil }
        return Disposition(state: .pending, nextAttemptAt: engine.now(), countsAsAnswered: false)
    }

    private func move(_ operation: Operation, to change: Disposition) async throws -> Operation {
        let moved = try await engine.data.transition(
            id: operation.id, to: change.state, reason: change.reason, nextAttemptAt: change.nextAttemptAt, from: [operation.state],
            now: engine.now())
        engine.events.tell(.operation(id: moved.id, state: moved.state))
        return moved
    }

    // MARK: sending

    /// One attempt. Nil when none was made.
    private func deliver(_ operation: Operation) async -> OperationState? {
        do {
            guard let upstream = engine.routes.upstream(named: operation.upstream) else { return nil }
            var head = operation.request
            if let principal = operation.principal {
                guard let secrets = engine.credentials.live(of: principal) else {
                    _ = try await move(operation, to: Disposition(state: .parked, reason: .auth, countsAsAnswered: false))
                    return nil
                }
                for field in secrets { head.fields[field.name] = field.value }
            }
            head.setKey(operation.idempotencyKey, isClients: operation.keyIsClients, upstream.idempotency)
            guard let leased = try await engine.data.lease(id: operation.id, now: engine.now()) else { return nil }
            return try await attempt(leased, head, upstream)
        } catch {
            engine.logger.error("replay of \(operation.id): \(error)")
            return nil
        }
    }

    private func attempt(_ operation: Operation, _ head: RequestHead, _ upstream: Upstream) async throws -> OperationState {
        let context = ReplayContext(upstream)
        let startedAt = engine.now()
        let body = OutboundRequest.Body(try engine.data.content(of: operation.body))
        var outcome: AttemptOutcome
        var received: [UInt8] = []
        do {
            let answer = try await engine.send(
                head, body, upstream: upstream, freshConnection: context.needsFreshConnection(for: operation, now: startedAt))
            outcome = .answered(answer.head)
            received = ((try? await answer.body.collect(upTo: Self.resultLimit))?.bytes).map { Array($0.readableBytesView) } ?? []
        } catch {
            outcome = .failed(error)
        }
        let change = OperationMachine.disposition(
            of: operation, after: outcome, body: received, context: context, now: engine.now(), random: .random(in: 0..<1))
        return try await record(operation, head, outcome, received, change).state
    }

    private func record(
        _ operation: Operation, _ head: RequestHead, _ outcome: AttemptOutcome, _ received: [UInt8], _ change: Disposition
    ) async throws -> Operation {
        var result: OperationResult?
        if case .answered(let answer) = outcome { result = OperationResult(head: answer, body: received) }
        let finished = try await engine.data.finish(
            id: operation.id, disposition: change, result: result, attempt: AttemptRecord(outcome), now: engine.now())
        if change.isCaptive {
            engine.reachability.record(.portalSeen(detail: change.detail ?? "portal"), for: operation.upstream, now: engine.now())
        }
        if let until = change.pauseUpstreamUntil { pauses.withLock { $0[operation.upstream] = until } }
        if change.state == .parked, change.reason == .auth, let principal = operation.principal { engine.credentials.forget(principal) }
        if let answer = result?.head { await engine.invalidate(after: answer, to: head) }
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
