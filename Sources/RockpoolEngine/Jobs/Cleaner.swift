// The cleanup job: on schedule, at start when over a limit, by admin and by command, always this one function (docs/storage.md#cleanup).
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

    private let engine: Engine
    private let state = Mutex(State())

    package init(engine: Engine) { self.engine = engine }

    /// When the stores were last cleaned for real; nil: never, or the job has not started.
    package var lastRun: Timestamp? { state.withLock(\.last) }

    /// How far the run is that is under way; nil without one.
    package var progress: CleanupProgress? { state.withLock(\.progress) }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            await self.runAtStart()
            while !Task.isCancelled {
                try? await Task.sleep(for: .milliseconds(self.engine.configuration.cleanup.interval.milliseconds))
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

    /// A limit lowered while the server was down holds from the start: entries are evicted as a store past the limit would.
    package func runAtStart() async {
        let before = await engine.data.lastCleanup()
        state.withLock { $0.last = $0.last ?? before }
        engine.clock.begin(lastSeen: before, wall: engine.now())
        engine.cache.pausesExpiry = !engine.clock.observe(engine.now())
        let evicted = await engine.cache.evictToLowMark()
        guard evicted.entries > 0 else { return }
        engine.logger.notice("the cache was over its limit", metadata: ["evicted": "\(evicted.entries)", "bytes": "\(evicted.bytes)"])
        engine.events.tell(.storage(detail: "eviction"))
    }

    /// Cleans the cache, then the data store. Who asks for the same while it runs gets that run's report; who asks for something else waits
    /// for his turn. What fails is in the report.
    package func runOnce(_ options: CleanupOptions) async -> CleanupReport {
        while true {
            let (task, isAsked) = start(options)
            let report = await task.value
            if isAsked { return report }
        }
    }

    /// The run under way, or a new one, and whether it does what is asked.
    private func start(_ options: CleanupOptions) -> (task: Task<CleanupReport, Never>, isAsked: Bool) {
        state.withLock { state in
            if let running = state.running { return (running.task, running.options == options) }
            let task = Task { await self.clean(options) }
            state.running = (options, task)
            return (task, true)
        }
    }

    private func clean(_ options: CleanupOptions) async -> CleanupReport {
        let (settings, now) = (engine.configuration.cleanup, engine.now())
        let pausesExpiry = !engine.clock.observe(now)
        engine.cache.pausesExpiry = pausesExpiry
        let cached = await engine.cache.cleanup(options, settings: settings, now: now) { [self] progress in
            state.withLock { $0.progress = progress }
        }
        let kept = await engine.data.cleanup(
            options, settings: settings, now: now, pausesExpiry: pausesExpiry,
            watch: { [self] progress in
                var progress = progress
                progress.removed = cached.removed.total
                state.withLock { $0.progress = progress }
            },
            noteGone: { [engine] in for operation in $0 { engine.forget(operation) } })
        let report = cached.merged(with: kept)
        state.withLock { state in
            (state.running, state.progress) = (nil, nil)
            if !options.dryRun { state.last = now }
        }
        if !options.dryRun { engine.events.tell(.storage(detail: "cleanup")) }
        if !Task.isCancelled { for error in report.errors + report.notes { engine.logger.warning("cleanup: \(error)") } }
        return report
    }
}
