// Sends queued writes once their upstream answers: the shell around `ReplayMachine` (docs/outbox.md#wire-rule, docs/outbox.md#lanes).
import Logging
import RockpoolCore
import RockpoolStore
import ServiceLifecycle
import Synchronization

/// Delivers the outbox. What is done, and when, is the machine's to say; this commits, sends and tells it what came of it.
package final class Replayer: Service {
    /// What one pass did.
    package struct Report: Equatable, Sendable {
        package var sent = 0
        package var delivered = 0
    }

    let engine: Engine
    private let machine: Mutex<ReplayMachine>
    private let pusher: Pusher
    /// What was sent and is not recorded yet.
    let attempts = Mutex<[String: Sending]>([:])

    package init(engine: Engine) {
        self.engine = engine
        pusher = Pusher(engine: engine)
        machine = Mutex(ReplayMachine(contexts: [:]))
    }

    /// Whether an operation waits for `upstream`: then it is worth a probe.
    package func somethingWaits(for upstream: String) -> Bool { machine.withLock { $0.somethingWaits(for: upstream) } }

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

    /// Where the machine has an operation.
    func state(of sequence: Int64) -> OperationState? { machine.withLock { $0.summary(of: sequence)?.state } }

    // MARK: the loop

    /// What is done in one go.
    private enum Work: Sendable {
        case alone(ReplayMachine.Action)
        case together(Pusher.Batch)
    }

    private enum Turn: Sendable {
        /// What came of an action.
        case done([ReplayMachine.Event])
        case changed
    }

    /// Steps the machine with whatever comes, and has done what it asks for, all side by side.
    @discardableResult
    private func replay(untilIdle: Bool) async -> Report {
        await withTaskGroup(of: Turn.self) { group in
            var report = Report()
            var running = 0
            var isWatching = false
            var events: [ReplayMachine.Event] = await load()
            while !Task.isCancelled {
                let version = engine.events.version
                let isStopping = Task.isShuttingDownGracefully
                // What others told is older than what came of our own actions, or it is found out at the next lease.
                for work in gathered(step(news() + events, isStopping: isStopping)) {
                    running += 1
                    group.addTask { .done(await self.perform(work)) }
                }
                for id in machine.withLock({ $0.takeMissed() }) {
                    running += 1
                    group.addTask { .done((try? await self.engine.data.operation(id: id)).map { [.changed(OperationSummary($0))] } ?? []) }
                }
                if running == 0, untilIdle || isStopping { break }
                if !untilIdle, !isWatching {
                    isWatching = true
                    let deadline = ContinuousClock.now + wait()
                    group.addTask {
                        _ = await self.engine.events.change(after: version, before: deadline)
                        return .changed
                    }
                }
                events = []
                switch await group.next() {
                case .done(let told):
                    running -= 1
                    events = told
                    told.forEach { report.count($0) }
                case .changed: isWatching = false
                case nil: break
                }
            }
            group.cancelAll()
            return report
        }
    }

    /// Everything that is open, as the store has it.
    private func load() async -> [ReplayMachine.Event] {
        _ = engine.inbox.take()
        machine.withLock { $0.forgetOperations() }
        do {
            let waiting = try await engine.data.openOperations()
            engine.adoptHosts(of: waiting)
            let open = waiting.map { OperationSummary($0) }
            let longest = contexts.values.map(\.idempotency.maxProcessing).max() ?? .zero
            let held = try await engine.data.endedInDoubt(since: engine.now() - longest).compactMap { operation in
                engine.laneHold(after: operation).map {
                    engine.hold(operation, until: $0)
                    return ReplayMachine.Event.held(
                        upstream: operation.upstream, lane: operation.lane, principal: operation.principal, until: $0)
                }
            }
            let able = Set(open.filter { $0.state == .parked }.map { [$0.principal ?? "", $0.upstream] })
                .filter { engine.canSend(as: $0[0], to: engine.routes.upstream(named: $0[1])) }
                .map { ReplayMachine.Event.credential(principal: $0[0]) }
            let proved = Set(waiting.compactMap(\.principal)).filter { engine.credentials.isProved($0) }
            return proved.map { .proved(principal: $0) } + held + open.map { .changed($0) } + able
        } catch {
            engine.logger.failed("replay: the outbox cannot be read", error)
            return []
        }
    }

    /// What others have told since the last step, and how the upstreams are.
    private func news() -> [ReplayMachine.Event] {
        let reachable = engine.routes.upstreams.map { upstream in
            ReplayMachine.Event.reachability(
                upstream: upstream.name, isReachable: engine.reachability.isUsable(upstream.name))
        }
        let able = machine.withLock(\.parkedIdentities)
            .filter { engine.canSend(as: $0.principal, to: engine.routes.upstream(named: $0.upstream)) }
            .map { ReplayMachine.Event.credential(principal: $0.principal) }
        return engine.inbox.take() + able + reachable
    }

    private func step(_ events: [ReplayMachine.Event], isStopping: Bool) -> [ReplayMachine.Action] {
        let now = engine.now()
        let contexts = contexts
        let actions = machine.withLock { machine in
            machine.reconfigure(contexts)
            return events.flatMap { machine.step($0, now: now, random: .random(in: 0..<1)) }
        }
        // At the end only what was sent is brought to its end.
        guard isStopping else { return actions }
        return actions.filter { action in
            switch action {
            case .record: true
            // Answered already: the look tells what to record.
            case .look(_, let sequence): machine.withLock { $0.isJudging(sequence) }
            case .send, .move: false
            }
        }
    }

    /// Writes of a resource with `sync.push` go together with what else of it may go now.
    private func gathered(_ actions: [ReplayMachine.Action]) -> [Work] {
        actions.map { action in
            guard case .send(_, let sequence) = action else { return .alone(action) }
            return machine.withLock { machine in
                guard let summary = machine.summary(of: sequence), let path = pusher.path(of: summary),
                    let upstream = engine.routes.upstream(named: summary.upstream)
                else { return .alone(action) }
                let others = machine.companions(of: sequence, limit: BatchPush.limit - 1, now: engine.now())
                guard !others.isEmpty else { return .alone(action) }
                return .together(Pusher.Batch(upstream: upstream, path: path, operations: [summary] + others))
            }
        }
    }

    private func perform(_ work: Work) async -> [ReplayMachine.Event] {
        switch work {
        case .alone(let action): return [await perform(action)]
        case .together(let batch):
            let outcome = await pusher.deliver(batch)
            let pause = outcome.pauseUntil.map { ReplayMachine.Event.paused(upstream: batch.upstream.name, until: $0) }
            var events = pause.map { [$0] } ?? []
            for operation in batch.operations {
                let now = try? await engine.data.operation(id: operation.id)
                events.append(now.map { .settled(OperationSummary($0)) } ?? .failed(sequence: operation.sequence))
            }
            return events
        }
    }

    private var contexts: [String: ReplayContext] {
        Dictionary(engine.routes.upstreams.map { ($0.name, ReplayContext($0)) }) { first, _ in first }
    }

    /// Until something becomes due by time, a second at most.
    private func wait() -> Duration {
        let longest = TimeSpan.seconds(1)
        let span = machine.withLock(\.nextWake).map { min(max($0 - engine.now(), .milliseconds(10)), longest) } ?? longest
        return .milliseconds(span.milliseconds)
    }
}

extension Replayer.Report {
    fileprivate mutating func count(_ event: ReplayMachine.Event) {
        if case .attempted = event { sent += 1 }
        if case .settled(let summary) = event, summary.state == .delivered { delivered += 1 }
    }
}
