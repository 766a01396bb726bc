// Cleanup with the server stopped: takes the store's lock and does the server's work (docs/storage.md#cleanup).
import Foundation
import Logging
import RockpoolCore
import RockpoolStore

enum OfflineCleanup {
    /// Cleans the stores of a stopped server and returns the report of docs/storage.md#cleanup as JSON.
    ///
    /// Called only if no server answers on the admin socket. A server may start meanwhile: the store's lock decides, and if another process
    /// holds it, `CommandFailure(.busy, …)` is thrown. A dry run opens nothing for writing: not a byte of either directory changes.
    static func run(
        configuration: Configuration, request: CleanupRequest, watch: @escaping CleanupWatch = { _ in }
    ) async throws -> Data {
        var report =
            request.dryRun || !hasStore(configuration.storage)
            ? try await look(configuration: configuration, options: request.options)
            : try await clean(configuration: configuration, options: request.options, watch: watch)
        report.dryRun = request.dryRun
        return try JSONEncoder.stable.encode(report)
    }

    /// False before the first start: then there is nothing to clean, and no store is created for it.
    private static func hasStore(_ storage: StorageSettings) -> Bool {
        let files = ["\(storage.stateDir)/data.sqlite", "\(storage.cacheDir)/cache.sqlite"]
        return DataStore.lacksDatabase(in: storage.stateDir) || files.contains { FileManager.default.fileExists(atPath: $0) }
    }

    /// Nobody knows which upstreams a stopped server would reach: by a normal cleanup nothing changes, by an aggressive one nothing is taken
    /// that may be needed.
    private static func hold(of configuration: Configuration, _ options: CleanupOptions) -> CleanupHold {
        CleanupHold(origins: options.aggressive ? configuration.upstreams.map(\.origin.url) : [])
    }

    private static func look(configuration: Configuration, options: CleanupOptions) async throws -> CleanupReport {
        let (storage, now) = (configuration.storage, WallClock.now())
        return try await StartFailure.naming {
            try await DataStore.whileStopped(storage.stateDir) {
                let cached = await CacheStore.lookWhileStopped(
                    storage.cacheDir, settings: storage, categories: configuration.categories, options: options,
                    cleanup: configuration.cleanup, hold: hold(of: configuration, options), now: now)
                let kept = await DataStore.lookWhileStopped(
                    storage.stateDir, settings: storage, options: options, cleanup: configuration.cleanup, now: now)
                return cached.merged(with: kept)
            }
        }
    }

    private static func clean(
        configuration: Configuration, options: CleanupOptions, watch: @escaping CleanupWatch
    ) async throws -> CleanupReport {
        let storage = configuration.storage
        let logger = Logger(label: "rockpool", level: .error)
        let data = try await StartFailure.naming {
            try DataStore.open(
                directory: storage.stateDir, settings: storage, outbox: nil, mayBeginAnew: false, clock: WallClock.now, logger: logger)
        }
        let cache = try await StartFailure.naming {
            try CacheStore.open(
                directory: storage.cacheDir, settings: storage, categories: configuration.categories, seal: data.seal, clock: WallClock.now,
                ticks: data.ticks, logger: logger)
        }
        let cached = await cache.cleanup(
            options, settings: configuration.cleanup, hold: hold(of: configuration, options), now: WallClock.now(), watch: watch)
        var report = cached.merged(with: await data.cleanup(options, settings: configuration.cleanup, now: WallClock.now(), watch: watch))
        // Add the orphans removed by opening the stores, as a dry run counts them too.
        report.orphans += cache.tidied + data.tidied
        await cache.close()
        await data.close()
        return report
    }
}
