// Announces events of the outbox and exceeded limits: to operators by the rules of `notify`, to clients by their callbacks
// (docs/guide/operating.md#alarms, docs/outbox.md#callbacks).
import HTTPTypes
import Logging
import RockpoolCore
import RockpoolStore
import ServiceLifecycle
import Synchronization

/// Reads the outbox's log in order. The position is stored after its events were announced, so that none is lost by a crash.
package final class Announcer: Service {
    private static let tick = Duration.seconds(1)
    private static let pause = Duration.milliseconds(100)
    /// The time between measurements of the limits.
    private static let measureEvery = TimeSpan.seconds(5)
    /// The time after a failure of the outbox.
    private static let retryWait = Duration.seconds(5)
    /// Programs of notices that run at once.
    private static let programLimit = 4
    private static let page = 500
    /// How far behind the first node of a fleet the others read the log: one that takes its place tells again what it may not have told.
    private static let overlap = TimeSpan.seconds(30)
    /// Older events are of no use to an operator.
    private static let oldest = TimeSpan.hours(24)

    private struct State {
        var position: Int64?
        var stored: Int64?
        var rules: [(rule: NoticeRule, gate: NoticeGate, standing: StandingNotices)] = []
        var measuredAt = Timestamp.distantPast
        /// Running programs.
        var programs = 0
        /// Set by events; cleared before the log is read.
        var isNews = true
    }

    let data: DataStore
    let cache: CacheStore
    let active: ActiveConfiguration
    let reachability: ReachabilityTable
    let pauses: UpstreamPauses
    let refusedWrites: RefusedWrites
    let now: @Sendable () -> Timestamp
    private let events: EngineEvents
    private let messages: OwnMessages
    private let logger: Logger
    private let state = Mutex(State())
    /// Sends notices, those of a test too.
    package let sender: NoticeSender

    init(
        data: DataStore, cache: CacheStore, active: ActiveConfiguration, reachability: ReachabilityTable, events: EngineEvents,
        notifier: OutboxNotifier, local: any LocalNotices, logger: Logger, now: @escaping @Sendable () -> Timestamp
    ) {
        (self.data, self.cache, self.active, self.reachability) = (data, cache, active, reachability)
        (self.events, self.logger, self.now) = (events, logger, now)
        pauses = notifier.pauses
        refusedWrites = notifier.refusedWrites
        messages = OwnMessages(data: data, notifier: notifier, now: now)
        sender = NoticeSender(messages: messages, local: local, logger: logger, now: now)
    }

    package func run() async throws {
        events.listen { [weak self] event in
            if case .operation = event { self?.state.withLock { $0.isNews = true } }
        }
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                let version = self.events.version
                do { try await self.runOnce() } catch {
                    self.logger.failed("notices and callbacks wait", error: error)
                    self.state.withLock { $0.isNews = true }
                    try? await Task.sleep(for: Self.retryWait)
                }
                guard self.isWanted else {
                    try? await Task.sleep(for: Self.tick)
                    continue
                }
                _ = await self.events.change(after: version, before: ContinuousClock.now + Self.tick)
                try? await Task.sleep(for: Self.pause)
            }
        }
    }

    private var isWanted: Bool {
        let configuration = active.configuration
        return !configuration.notify.isEmpty || !configuration.callbacks.origins.isEmpty
    }

    /// Announces what has happened since the last call.
    /// - Throws: `DataStoreError`; the same events are announced again then.
    package func runOnce() async throws {
        guard isWanted else {
            return state.withLock { state in
                let programs = state.programs
                state = State()
                state.programs = programs
            }
        }
        takeRules()
        if state.withLock({ $0.position == nil }) { try await begin() }
        while state.withLock({ state in
            defer { state.isNews = false }
            return state.isNews
        }) {
            if try await readPage() { state.withLock { $0.isNews = true } }
        }
        if !data.isFirstNode { state.withLock { $0.isNews = true } }
        await measure()
        for (rule, notices) in due() { for notice in notices { await send(notice, by: rule) } }
        try await store()
    }

    /// Begins where the last announcement has ended, or with the next event.
    private func begin() async throws {
        let (announced, last) = try await data.journalPosition()
        state.withLock { state in
            state.position = min(announced ?? last, last)
            state.stored = announced
        }
    }

    /// Keeps the gates of rules that are still in force.
    private func takeRules() {
        let rules = active.configuration.notify
        state.withLock { state in
            guard state.rules.map(\.rule) != rules else { return }
            let known = state.rules
            state.rules = rules.map { rule in
                known.first { $0.rule == rule } ?? (rule, NoticeGate(every: rule.every), StandingNotices())
            }
        }
    }

    /// Announces the next lines, or leaves them to the first node of the fleet. Returns true if there may be more.
    private func readPage() async throws -> Bool {
        let position = state.withLock { $0.position ?? 0 }
        let lines = try await data.journal(after: position, limit: Self.page)
        guard data.isFirstNode else { return follow(lines) }
        let wanted = lines.filter { OperationState(rawValue: $0.event)?.isAnnounced == true }
        let operations = try await data.operations(sequences: Array(Set(wanted.map(\.sequence))))
        let bySequence = Dictionary(operations.map { ($0.sequence, $0) }) { first, _ in first }
        for line in lines {
            if let operation = bySequence[line.sequence], operation.state.rawValue == line.event {
                try await announce(operation, line: line)
            }
            state.withLock { $0.position = line.number }
        }
        return lines.count == Self.page
    }

    /// Passes over lines that the first node has announced.
    private func follow(_ lines: [JournalLine]) -> Bool {
        let passed = data.fleet?.absence == nil ? lines.prefix { now() - $0.at >= Self.overlap } : []
        state.withLock { state in
            if let last = passed.last { state.position = last.number }
        }
        return passed.count == Self.page
    }

    private func announce(_ operation: QueuedWrite, line: JournalLine) async throws {
        guard ReceiverKind(upstream: operation.upstream) == nil else { return }
        if let url = operation.request.fields[.rockpoolCallback], operation.state.endsCallback {
            _ = try await messages.queueCallback(about: operation, to: url)
        }
        guard let kind = NoticeKind(rawValue: operation.state.rawValue), now() - line.at < Self.oldest else { return }
        var notice = Notice(kind, upstream: operation.upstream)
        (notice.operations, notice.line) = ([operation.id], line.number)
        notice.cause = operation.lastError ?? operation.reason?.rawValue
        await offer(notice)
    }

    /// Sends a notice by every rule that names its kind, as far as their gates admit it.
    private func offer(_ notice: Notice) async {
        let now = now()
        let admitting = state.withLock { state in
            state.rules.indices.compactMap { index -> NoticeRule? in
                guard let kind = notice.kind, state.rules[index].rule.on.contains(kind) else { return nil }
                return state.rules[index].gate.admit(notice, now: now) == nil ? nil : state.rules[index].rule
            }
        }
        for rule in admitting { await send(notice, by: rule) }
    }

    private func measure() async {
        let now = now()
        let isDue = state.withLock { state in
            guard now < state.measuredAt || now - state.measuredAt >= Self.measureEvery else { return false }
            state.measuredAt = now
            return !state.rules.isEmpty
        }
        guard isDue else { return }
        let readings = await readings()
        let news = state.withLock { state in
            state.rules.indices.flatMap { index -> [(NoticeRule, Notice)] in
                let rule = state.rules[index].rule
                return state.rules[index].standing.news(readings.notices(for: rule)).compactMap { notice in
                    state.rules[index].gate.admit(notice, now: now).map { (rule, $0) }
                }
            }
        }
        for (rule, notice) in news { await send(notice, by: rule) }
    }

    private func due() -> [(NoticeRule, [Notice])] {
        let now = now()
        return state.withLock { state in state.rules.indices.map { (state.rules[$0].rule, state.rules[$0].gate.due(now: now)) } }
    }

    /// Queues a webhook, or starts a program; a slow program holds up nothing.
    private func send(_ notice: Notice, by rule: NoticeRule) async {
        guard rule.webhook == nil else {
            await sender.send(notice, by: rule)
            return
        }
        let isFree = state.withLock { state in
            guard state.programs < Self.programLimit else { return false }
            state.programs += 1
            return true
        }
        guard isFree else {
            logger.warning("a notice was not sent: its program still runs", metadata: ["target": "\(rule.target)"])
            return
        }
        Task {
            await sender.send(notice, by: rule)
            state.withLock { $0.programs -= 1 }
        }
    }

    /// Records the position up to which everything was announced; held notices are not.
    private func store() async throws {
        let position = state.withLock { state -> Int64? in
            let held = state.rules.compactMap { $0.gate.firstHeldLine }.min()
            let position = held.map { min($0 - 1, state.position ?? 0) } ?? state.position
            return position == state.stored ? nil : position
        }
        guard let position else { return }
        try await data.setJournalPosition(position)
        state.withLock { $0.stored = position }
    }
}

extension OperationState {
    /// True for the ends that a callback reports.
    fileprivate var endsCallback: Bool { self == .delivered || self == .cancelled || self == .dead }
    /// True if its line of the log may be announced.
    fileprivate var isAnnounced: Bool { endsCallback || NoticeKind(rawValue: rawValue) != nil }
}

// MARK: - Measurements

/// The measurements behind the notices about limits (docs/guide/operating.md#alarms).
extension Announcer {
    /// Measures the server. What cannot be read is left out.
    func readings() async -> NoticeReadings {
        var readings = NoticeReadings()
        let now = now()
        if let oldest = try? await data.oldestPendingWrite() {
            readings.oldest = (oldest.id, oldest.upstream, max(.zero, now - oldest.acceptedAt), oldest.lastError)
        }
        let usage = data.usage()
        (readings.dataBytes, readings.dataLimitBytes) = (usage.usedBytes, usage.limitBytes)
        if let trouble = data.trouble { readings.faults.append("The outbox cannot be written to (\(trouble.detail))") }
        if let refused = refusedWrites.words(now: now) { readings.faults.append("The outbox had no room: \(refused)") }
        if let trouble = cache.trouble { readings.faults.append("The cache cannot be written to (\(trouble.detail))") }
        if let usage = try? await cache.usage(), usage.freeDiskBytes < usage.minFreeBytes {
            let free = ByteCount(usage.freeDiskBytes)
            readings.faults.append("The disk of the cache has \(free) free, less than storage.min_free; nothing is stored")
        }
        readings.pausedRoutes = pauses.takePausedRoutes().map { ($0.upstream, $0.pause) }
        for upstream in active.routes.upstreams where upstream.receiver == nil {
            guard let machine = reachability.machine(of: upstream.name), machine.mode == .auto, !machine.isReachable else { continue }
            readings.absent.append((upstream.name, max(.zero, now - machine.since), machine.lastError))
        }
        return readings
    }
}
