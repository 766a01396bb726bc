// The cleanup job. Scheduled runs, the admin API and the command all use `runOnce`; the start evicts only (docs/storage.md#cleanup).
import Logging
package import RockpoolCore
package import RockpoolStore
import ServiceLifecycle
import Synchronization

/// Cleans both stores, one run at a time.
package final class Cleaner: Service {
    private struct State {
        var last: Timestamp?
        var running: (options: CleanupOptions, task: Task<CleanupReport, Never>)?
        var progress: CleanupProgress?
    }

    private let cache: CacheStore
    private let data: DataStore
    private let clock: ClockWatch
    private let events: EngineEvents
    private let notifier: OutboxNotifier
    private let active: ActiveConfiguration
    private let reachability: ReachabilityTable
    private let logger: Logger
    private let now: @Sendable () -> Timestamp
    private let state = Mutex(State())

    init(
        cache: CacheStore, data: DataStore, clock: ClockWatch, events: EngineEvents, notifier: OutboxNotifier, active: ActiveConfiguration,
        reachability: ReachabilityTable, logger: Logger, now: @escaping @Sendable () -> Timestamp
    ) {
        self.cache = cache
        self.data = data
        self.clock = clock
        self.events = events
        self.notifier = notifier
        self.active = active
        self.reachability = reachability
        self.logger = logger
        self.now = now
    }

    /// When the stores were last cleaned, dry runs excluded; nil if never, or before the job has started.
    package var lastRun: Timestamp? { state.withLock(\.last) }

    /// The progress of the current run; nil without one.
    package var progress: CleanupProgress? { state.withLock(\.progress) }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            await self.runAtStart()
            while !Task.isCancelled {
                try? await Task.sleep(for: .milliseconds(self.active.configuration.cleanup.interval.milliseconds))
                guard !Task.isCancelled else { return }
                let task = self.start(CleanupOptions()).task
                _ = await withTaskCancellationHandler {
                    await task.value
                } onCancel: {
                    task.cancel()
                }
            }
        }
    }

    /// Restores the time of the last run and checks the clock, then evicts entries if the limit was lowered while the server was down.
    package func runAtStart() async {
        let before = await self.data.lastCleanup()
        state.withLock { $0.last = $0.last ?? before }
        self.clock.begin(lastSeen: before, wall: self.now())
        self.cache.pausesExpiry = !self.clock.observe(self.now())
        let evicted = await self.cache.evictToLowMark()
        guard evicted.entries > 0 else { return }
        self.logger.notice("the cache was over its limit", metadata: ["evicted": "\(evicted.entries)", "bytes": "\(evicted.bytes)"])
        self.events.tell(.storage(detail: "eviction"))
    }

    /// Cleans the cache, then the data store. A call with the options of the current run returns that run's report; a call with other
    /// options waits for it to end and then starts its own. Errors are in the report.
    package func runOnce(_ options: CleanupOptions) async -> CleanupReport {
        while true {
            let (task, isAsked) = start(options)
            let report = await task.value
            if isAsked { return report }
        }
    }

    /// Returns the current run, or starts one. `isAsked` is true if the run has these options.
    private func start(_ options: CleanupOptions) -> (task: Task<CleanupReport, Never>, isAsked: Bool) {
        state.withLock { state in
            if let running = state.running { return (running.task, running.options == options) }
            let task = Task { await self.clean(options) }
            state.running = (options, task)
            return (task, true)
        }
    }

    /// The offline copies that one lives on: those of upstreams that are away, and those that waiting writes name.
    private func hold() async -> CleanupHold {
        let away = active.routes.upstreams.filter { reachability.machine(of: $0.name)?.isReachable == false }
        let waiting = ((try? await data.openOperations()) ?? []).prefix(Self.holdLimit)
        var urls: Set<String> = []
        for operation in waiting {
            let origin = operation.request.origin.url
            urls.formUnion([operation.request.url] + [operation.entity, operation.collection].compactMap(\.self).map { origin + $0 })
        }
        return CleanupHold(origins: away.map(\.origin.url), urls: urls.sorted())
    }

    /// The most waiting writes whose copies are held.
    private static let holdLimit = 2000

    private func clean(_ options: CleanupOptions) async -> CleanupReport {
        let (settings, now) = (self.active.configuration.cleanup, self.now())
        let pausesExpiry = !self.clock.observe(now)
        self.cache.pausesExpiry = pausesExpiry
        let cached = await self.cache.cleanup(options, settings: settings, hold: await hold(), now: now) { [self] progress in
            state.withLock { $0.progress = progress }
        }
        let kept = await self.data.cleanup(
            options, settings: settings, now: now, pausesExpiry: pausesExpiry,
            watch: { [self] progress in
                var progress = progress
                progress.removed = cached.removed.total
                state.withLock { $0.progress = progress }
            },
            noteGone: { [self] in for operation in $0 { self.notifier.forget(operation) } })
        let report = cached.merged(with: kept)
        state.withLock { state in
            (state.running, state.progress) = (nil, nil)
            if !options.dryRun { state.last = now }
        }
        if !options.dryRun { self.events.tell(.storage(detail: "cleanup")) }
        if !Task.isCancelled { for error in report.errors + report.notes { self.logger.warning("cleanup: \(error)") } }
        return report
    }
}
