// Sends queued writes when their upstream is reachable: the shell around `ReplayMachine` (docs/outbox.md#wire-rule, docs/outbox.md#lanes).
import HTTPTypes
import Logging
import RockpoolCore
import RockpoolStore
import ServiceLifecycle
import Synchronization

/// Delivers the outbox. The machine decides every action and its time; the replayer commits, sends and returns the results to it.
package final class Replayer: Service {
    /// The counts of one pass.
    package struct Report: Equatable, Sendable {
        package var sent = 0
        package var delivered = 0
    }

    let data: DataStore
    let cache: CacheStore
    let active: ActiveConfiguration
    let reachability: ReachabilityTable
    let upstreams: UpstreamClient
    let outbound: OutboundWrites
    let credentials: Credentials
    let renewal: CredentialRenewal
    let notifier: OutboxNotifier
    let events: EngineEvents
    let lookup: EntryLookup
    let updates: EntryUpdates
    let effects: OwnWriteEffects
    let identities: KnownIdentities
    let itemsBefore: ItemsBefore
    let traces: TraceExporter
    let logger: Logger
    let now: @Sendable () -> Timestamp
    private let machine: Mutex<ReplayMachine>
    private let pusher: Pusher
    /// `RouteTable.strictRoutes` when the operations were read.
    private let strictRoutes = Mutex<[String: [String]]>([:])
    let startedAt: Timestamp
    /// Sendings that are not recorded yet, by operation id.
    let attempts = Mutex<[String: SentAttempt]>([:])

    init(
        data: DataStore, cache: CacheStore, active: ActiveConfiguration, reachability: ReachabilityTable, upstreams: UpstreamClient,
        outbound: OutboundWrites, credentials: Credentials, renewal: CredentialRenewal, notifier: OutboxNotifier, events: EngineEvents,
        lookup: EntryLookup, updates: EntryUpdates, effects: OwnWriteEffects, identities: KnownIdentities,
        itemsBefore: ItemsBefore, traces: TraceExporter, logger: Logger, now: @escaping @Sendable () -> Timestamp, pusher: Pusher
    ) {
        self.data = data
        self.cache = cache
        self.active = active
        self.reachability = reachability
        self.upstreams = upstreams
        self.outbound = outbound
        self.credentials = credentials
        self.renewal = renewal
        self.notifier = notifier
        self.events = events
        self.lookup = lookup
        self.updates = updates
        self.effects = effects
        self.identities = identities
        self.itemsBefore = itemsBefore
        self.traces = traces
        self.logger = logger
        self.now = now
        self.pusher = pusher
        startedAt = now()
        machine = Mutex(ReplayMachine(contexts: [:], changesNumbers: data.isOfFleet))
    }

    /// True if an operation waits for `upstream`, so that a probe is worthwhile.
    package func somethingWaits(for upstream: String) -> Bool { machine.withLock { $0.somethingWaits(for: upstream) } }

    /// Replays whenever an event arrives or an operation becomes due. At shutdown it starts nothing new and finishes the running actions.
    package func run() async throws {
        _ = await withGracefulShutdownHandler {
            await replay(untilIdle: false)
        } onGracefulShutdown: {
            self.events.wake()
        }
    }

    /// Sends every operation that is ready now or becomes ready through that.
    @discardableResult
    package func runOnce() async -> Report { await replay(untilIdle: true) }

    var lostAnswers: LostAnswers {
        LostAnswers(active: active, outbound: outbound, effects: effects, updates: updates, moment: data.moment)
    }

    var duty: FleetDuty { FleetDuty(data: data, renewal: renewal, active: active) }

    /// Returns an operation with an action under way as it is in the machine.
    func summary(of id: String) -> OperationSummary? { machine.withLock { $0.summary(ofBusy: id) } }

    // MARK: the loop

    /// A unit of work, executed as one task.
    private enum Work: Sendable {
        case alone(ReplayMachine.Action)
        case together(Pusher.Batch)
    }

    private enum Turn: Sendable {
        /// The results of an action.
        case done([ReplayMachine.Event])
        case changed
    }

    /// Steps the machine with every event and executes its actions concurrently.
    @discardableResult
    private func replay(untilIdle: Bool) async -> Report {
        await withTaskGroup(of: Turn.self) { group in
            var report = Report()
            var running = 0
            var isWatching = false
            var events: [ReplayMachine.Event] = await load()
            while !Task.isCancelled {
                let version = self.events.version
                let isStopping = Task.isShuttingDownGracefully
                let again = await readAfterChange()
                // Events from outside come first: they are older than the results of our own actions, or the next lease detects the change.
                for work in gathered(step([news(), again, events].joined(), isStopping: isStopping)) {
                    running += 1
                    group.addTask { .done(await self.perform(work)) }
                }
                for id in machine.withLock({ $0.takeMissed() }) {
                    running += 1
                    group.addTask { .done(await self.reread(id)) }
                }
                if running == 0, untilIdle || isStopping { break }
                if !untilIdle, !isWatching {
                    isWatching = true
                    let deadline = ContinuousClock.now + wait()
                    group.addTask {
                        _ = await self.events.change(after: version, before: deadline)
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

    /// Reads every open operation from the store.
    private func load() async -> [ReplayMachine.Event] {
        // The rows say everything but this: the gates of upstreams outlive a reading of the store.
        let resumed = notifier.inbox.take().filter { event in
            if case .resumed = event { true } else { false }
        }
        machine.withLock { $0.forgetOperations() }
        do {
            notifier.adoptHosts(of: try await data.openOrigins())
            let open = try await openOperations()
            let longest = contexts.values.map(\.idempotency.maxProcessing).max() ?? .zero
            let held = try await data.endedInDoubt(since: now() - longest).compactMap { operation in
                notifier.laneHold(after: operation).map {
                    notifier.hold(operation, until: $0)
                    return ReplayMachine.Event.held(
                        upstream: operation.upstream, lane: operation.lane, principal: operation.principal, until: $0)
                }
            }
            let able = Set(open.filter { $0.state == .parked }.map { [$0.principal ?? "", $0.upstream] })
                .filter { renewal.canSend(as: $0[0], to: active.routes.upstream(named: $0[1])) }
                .map { ReplayMachine.Event.credential(principal: $0[0]) }
            let proved = Set(open.compactMap(\.principal)).filter { credentials.isProved($0) }
            if open.count >= FreedMemory.manyWrites { FreedMemory.process.muchWasFreed() }
            // Nothing of this is copied: there may be a hundred thousand.
            var events = resumed
            events.reserveCapacity(resumed.count + proved.count + held.count + open.count + able.count)
            events += proved.map { .proved(principal: $0) }
            events += held
            for operation in open { events.append(.changed(operation)) }
            events += able
            return events
        } catch {
            logger.failed("replay: the outbox cannot be read", error: error)
            return []
        }
    }

    /// Reads every open operation, with what its route says of it.
    private func openOperations() async throws -> [OperationSummary] {
        let routes = active.routes
        strictRoutes.withLock { $0 = routes.strictRoutes }
        return try await data.reduceOpen(into: []) { open, operation, _, target in
            var operation = operation
            routes.complete(&operation, target: target)
            open.append(operation)
        }
    }

    /// Returns the open operations if a change of the configuration gives some of them another place in their lanes.
    private func readAfterChange() async -> [ReplayMachine.Event] {
        guard strictRoutes.withLock({ $0 }) != active.routes.strictRoutes else { return [] }
        return (try? await openOperations())?.map { .changed($0) } ?? []
    }

    /// Reads an operation that was changed while it was busy; its row may have been removed meanwhile.
    private func reread(_ id: String) async -> [ReplayMachine.Event] {
        do {
            guard let operation = try await data.operation(id: id) else { return gone(id).map { [.reread($0)] } ?? [] }
            return [.reread(active.summary(of: operation))]
        } catch { return [] }
    }

    /// Returns the events from outside since the last step, and the reachability of the upstreams.
    private func news() -> [ReplayMachine.Event] {
        let reachable = active.routes.upstreams.map { upstream in
            ReplayMachine.Event.reachability(
                upstream: upstream.name, isReachable: reachability.isUsable(upstream.name))
        }
        let able = machine.withLock(\.parkedIdentities)
            .filter { renewal.canSend(as: $0.principal, to: active.routes.upstream(named: $0.upstream)) }
            .map { ReplayMachine.Event.credential(principal: $0.principal) }
        return notifier.inbox.take() + able + reachable
    }

    private func step(_ events: some Sequence<ReplayMachine.Event>, isStopping: Bool) -> [ReplayMachine.Action] {
        let now = self.now()
        let (contexts, duty) = (contexts, duty)
        let (actions, begun) = machine.withLock { machine in
            machine.reconfigure(contexts)
            let actions = events.flatMap { machine.step(duty.located($0), now: now, random: .random(in: 0..<1)) }
            notifier.measures.noteRunning(machine.running)
            return (actions, notifier.pauses.replace(by: machine))
        }
        for paused in begun {
            logger.warning(
                "the queue of a route pauses: its writes are refused one like the other",
                metadata: ["upstream": "\(paused.upstream)", "route": "\(paused.pause.route)", "cause": "\(paused.pause.cause)"])
        }
        // While stopping, only the operations that were sent are finished.
        guard isStopping else { return actions }
        return actions.filter { action in
            switch action {
            case .record: true
            // The operation was answered; the probe decides the disposition to record.
            case .look(let id, _): machine.withLock { $0.isJudging(id) }
            case .send, .move: false
            }
        }
    }

    /// Joins a write of a resource with `sync.push` with the other ready writes of the resource into a batch.
    private func gathered(_ actions: [ReplayMachine.Action]) -> [Work] {
        actions.map { action in
            guard case .send(let id, _) = action else { return .alone(action) }
            return machine.withLock { machine in
                guard let summary = machine.summary(ofBusy: id), let path = pusher.path(of: summary),
                    let upstream = active.routes.upstream(named: summary.upstream)
                else { return .alone(action) }
                let others = machine.companions(of: summary, limit: BatchPush.limit - 1, now: now())
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
            var events: [ReplayMachine.Event] = []
            for operation in batch.operations {
                if let moment = outcome.pauses[operation.id] {
                    events.append(.throttled(id: operation.id, until: moment))
                }
                guard let sign = outcome.signs[operation.id] else { continue }
                events.append(
                    .answered(
                        upstream: operation.upstream, route: operation.watchedRoute, client: operation.client, sign,
                        id: operation.id))
            }
            for operation in batch.operations {
                let now = try? await data.operation(id: operation.id)
                events.append(now.map { .settled(active.summary(of: $0)) } ?? .failed(id: operation.id))
            }
            return events
        }
    }

    private var contexts: [String: ReplayContext] {
        Dictionary(active.routes.upstreams.map { ($0.name, ReplayContext($0)) }) { first, _ in first }
    }

    /// Returns the time until the next operation is due, at most one second.
    private func wait() -> Duration {
        let longest = TimeSpan.seconds(1)
        let span = machine.withLock(\.nextWake).map { min(max($0 - now(), .milliseconds(10)), longest) } ?? longest
        return .milliseconds(span.milliseconds)
    }
}

extension Replayer.Report {
    fileprivate mutating func count(_ event: ReplayMachine.Event) {
        if case .attempted = event { sent += 1 }
        if case .settled(let summary) = event, summary.state == .delivered { delivered += 1 }
    }
}
