// Sends queued writes once their upstream answers: in order within a lane, lanes side by side (outbox.md §1.3, §1.8).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore
import ServiceLifecycle
import Synchronization

/// Delivers the outbox. What an answer means is `OperationMachine`'s to say; this only sends and records.
package final class Replayer: Service {
    /// What one pass did.
    package struct Report: Equatable, Sendable {
        package var sent = 0
        package var delivered = 0
    }

    /// Operations under way at once.
    private static let parallel = 32

    let engine: Engine
    private let pauses = Mutex<[String: Timestamp]>([:])
    private let waiting = Mutex<Set<String>>([])
    private let held = Mutex<[String: Timestamp]>([:])

    package init(engine: Engine) { self.engine = engine }

    /// Whether an operation waits for `upstream`: then it is worth a probe.
    package func somethingWaits(for upstream: String) -> Bool { waiting.withLock { $0.contains(upstream) } }

    /// Replays whenever something has changed or becomes due. At shutdown takes nothing new and lets what is under way end.
    package func run() async throws {
        _ = await withGracefulShutdownHandler {
            await projectLast()
            await replay(untilIdle: false)
        } onGracefulShutdown: {
            self.engine.events.wake()
        }
    }

    /// Outcome and cache are two databases: a crash between the two left stored copies fresh that a delivery had made old.
    package func projectLast() async {
        do {
            for operation in try await engine.data.lastDelivered(within: .minutes(1)) {
                if let answer = operation.result?.head { await engine.invalidate(after: answer, to: operation.request) }
            }
        } catch {
            engine.logger.failed("replay: the last deliveries cannot be read", error)
        }
    }

    /// Sends everything that is ready now, and what becomes ready by that.
    @discardableResult
    package func runOnce() async -> Report { await replay(untilIdle: true) }

    // MARK: the loop

    private enum Turn: Sendable {
        case ended(id: String, OperationState?)
        case changed
    }

    /// Keeps up to `parallel` operations under way. A slow one holds its lane and nothing else.
    @discardableResult
    private func replay(untilIdle: Bool) async -> Report {
        await withTaskGroup(of: Turn.self) { group in
            var report = Report()
            var running: Set<String> = []
            var isWatching = false
            while !Task.isCancelled, !(Task.isShuttingDownGracefully && running.isEmpty) {
                let version = engine.events.version
                let (ready, nextDue) = Task.isShuttingDownGracefully ? ([], nil) : await self.ready(beside: running)
                for operation in ready {
                    running.insert(operation.id)
                    group.addTask { .ended(id: operation.id, await self.deliver(operation)) }
                }
                if untilIdle, running.isEmpty { break }
                if !untilIdle, !isWatching {
                    isWatching = true
                    let deadline = ContinuousClock.now + wait(until: nextDue)
                    group.addTask {
                        _ = await self.engine.events.change(after: version, before: deadline)
                        return .changed
                    }
                }
                switch await group.next() {
                case .ended(let id, let state):
                    running.remove(id)
                    if let state { report.count(state) }
                case .changed: isWatching = false
                case nil: break
                }
            }
            group.cancelAll()
            return report
        }
    }

    /// Until something becomes due by time, a second at most.
    private func wait(until due: Timestamp?) -> Duration {
        let longest = TimeSpan.seconds(1)
        let span = due.map { min(max($0 - engine.now(), .milliseconds(10)), longest) } ?? longest
        return .milliseconds(span.milliseconds)
    }

    private func ready(beside running: Set<String>) async -> (ready: [RockpoolCore.Operation], nextDue: Timestamp?) {
        do {
            let open = await settle(try await engine.data.laneHeads(), beside: running)
            waiting.withLock { $0 = Set(open.lazy.filter { $0.state == .pending }.map(\.upstream)) }
            let summaries = open.map { OperationSummary($0) }
            let byID = Dictionary(open.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
            let ready = ReplayOrder.ready(summaries, now: engine.now()).compactMap { byID[$0] }
                .filter { mayGo($0.upstream) && !running.contains($0.id) && !isHeld($0.id) }
            return (
                Array(ready.prefix(Self.parallel - running.count)), ReplayOrder.nextDue(summaries.filter { mayGo($0.upstream) })
            )
        } catch {
            engine.logger.failed("replay: the outbox cannot be read", error)
            return ([], nil)
        }
    }

    private func mayGo(_ upstream: String) -> Bool {
        if let until = pauses.withLock({ $0[upstream] }), until > engine.now() { return false }
        return engine.reachability.machine(of: upstream)?.isReachable ?? false
    }

    /// Whether the outbox lately failed over this operation: trying at once would only fail again, and again.
    private func isHeld(_ id: String) -> Bool {
        held.withLock { held in
            guard let until = held[id] else { return false }
            if until <= engine.now() { held[id] = nil }
            return until > engine.now()
        }
    }

    func hold(_ id: String) { held.withLock { $0[id] = engine.now() + .seconds(1) } }

    /// Nothing goes to an upstream that asked for a pause (429, 503) until then.
    func pause(_ upstream: String, until moment: Timestamp) { pauses.withLock { $0[upstream] = moment } }

    // MARK: before sending

    /// Ends what has expired, and decides about what a crash or a lost answer left open.
    private func settle(_ heads: [RockpoolCore.Operation], beside running: Set<String>) async -> [RockpoolCore.Operation] {
        var settled: [RockpoolCore.Operation] = []
        for operation in heads {
            let context = engine.routes.upstream(named: operation.upstream).map { ReplayContext($0) }
            let change =
                OperationMachine.expiry(of: operation, now: engine.now())
                ?? context.flatMap { OperationMachine.settle(operation, context: $0, now: engine.now()) } ?? awakened(operation)
                ?? abandoned(operation, running)
            // A person may have steered it meanwhile: then it is looked at again next time.
            if let change { (try? await move(operation, to: change)).map { settled.append($0) } } else { settled.append(operation) }
        }
        return settled
    }

    /// In flight, and nobody sends it: its outcome could not be recorded. It may have been applied.
    private func abandoned(_ operation: RockpoolCore.Operation, _ running: Set<String>) -> Disposition? {
        guard operation.state == .inflight, !running.contains(operation.id) else { return nil }
        return Disposition(
            state: .uncertain, reason: .lostAnswer, nextAttemptAt: engine.now(), countsAsAnswered: false)
    }

    /// A parked operation whose identity has shown a live credential since.
    private func awakened(_ operation: RockpoolCore.Operation) -> Disposition? {
        guard operation.state == .parked, operation.reason == .auth, let principal = operation.principal,
            engine.credentials.live(of: principal) != nil
        else { return nil }
        return Disposition(state: .pending, nextAttemptAt: engine.now(), countsAsAnswered: false)
    }

    func move(_ operation: RockpoolCore.Operation, to change: Disposition) async throws -> RockpoolCore.Operation {
        let moved = try await engine.data.transition(
            id: operation.id, to: change.state, reason: change.reason, nextAttemptAt: change.nextAttemptAt, from: [operation.state],
            now: engine.now())
        engine.events.tell(.operation(id: moved.id, state: moved.state))
        return moved
    }
}

extension Replayer.Report {
    fileprivate mutating func count(_ state: OperationState) {
        sent += 1
        if state == .delivered { delivered += 1 }
    }
}
