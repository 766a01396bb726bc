// The cleanup job: on schedule, at start when over a limit, by admin and by command, always this one function (storage.md §6).
import Logging
package import RockpoolCore
package import RockpoolStore
import ServiceLifecycle
import Synchronization

/// Cleans both stores.
package final class Cleaner: Service {
    private let engine: Engine
    private let last = Mutex<Timestamp?>(nil)

    package init(engine: Engine) { self.engine = engine }

    /// When it last ran for real; nil since the start not at all.
    package var lastRun: Timestamp? { last.withLock { $0 } }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            await self.runAtStart()
            while !Task.isCancelled {
                try? await Task.sleep(for: .milliseconds(self.engine.configuration.cleanup.interval.milliseconds))
                guard !Task.isCancelled else { return }
                _ = try? await self.runOnce(CleanupOptions())
            }
        }
    }

    private func runAtStart() async {
        guard let usage = try? await engine.cache.usage(), usage.usedBytes > usage.limitBytes else { return }
        _ = try? await runOnce(CleanupOptions())
    }

    /// Cleans the cache, then the data store.
    ///
    /// - Throws: only when a store cannot be read at all; what else fails is in the report.
    package func runOnce(_ options: CleanupOptions) async throws -> CleanupReport {
        let (settings, now) = (engine.configuration.cleanup, engine.now())
        let cached = try await engine.cache.cleanup(options, settings: settings, now: now)
        let kept = try await engine.data.cleanup(options, settings: settings, now: now)
        let report = cached.merged(with: kept)
        if !options.dryRun {
            last.withLock { $0 = now }
            engine.events.tell(.storage(detail: "cleanup"))
        }
        for error in report.errors { engine.logger.warning("cleanup: \(error)") }
        return report
    }
}
