// Cleanup with the server stopped: takes the store's lock and does what the server would (storage.md §6).
import Foundation
import Logging
import RockpoolCore
import RockpoolStore

/// What `storage-cleanup` was asked to do.
struct CleanupRequest: Hashable, Sendable {
    var aggressive = false
    var dryRun = false
    /// Only entries of this category.
    var category: String?
    /// Only what was not used for so long.
    var olderThan: TimeSpan?
    /// A full VACUUM, whatever the share of free pages.
    var vacuum = false
}

extension CleanupRequest {
    /// The body of `POST /v1/storage/cleanup`.
    var body: Tree {
        var members: [Tree.Member] = [
            .init("aggressive", .bool(aggressive)), .init("dryRun", .bool(dryRun)), .init("vacuum", .bool(vacuum)),
        ]
        if let category { members.append(.init("category", .text(category))) }
        if let olderThan { members.append(.init("olderThanSeconds", .int(Int(clamping: olderThan.seconds)))) }
        return .map(members)
    }
}

enum OfflineCleanup {
    /// Cleans the stores of a stopped server; gives the report of storage.md §6 as JSON.
    ///
    /// Called only when nobody answers on the admin socket. A server may start meanwhile: the store's lock decides,
    /// and `CommandFailure(.busy, …)` is what to throw when another process holds it.
    static func run(_ configuration: Configuration, _ request: CleanupRequest) async throws -> Data {
        let storage = configuration.storage
        let logger = Logger(label: "rockpool", level: .error)
        let data = try await StartFailure.naming {
            try DataStore.open(directory: storage.stateDir, settings: storage, clock: WallClock.now, logger: logger)
        }
        let cache = try await StartFailure.naming {
            try CacheStore.open(
                directory: storage.cacheDir, settings: storage, categories: configuration.categories, clock: WallClock.now, logger: logger)
        }
        let options = CleanupOptions(
            aggressive: request.aggressive, dryRun: request.dryRun, vacuum: request.vacuum, category: request.category,
            olderThan: request.olderThan)
        let report = try await cache.cleanup(options, settings: configuration.cleanup, now: WallClock.now())
            .merged(with: data.cleanup(options, settings: configuration.cleanup, now: WallClock.now()))
        await cache.close()
        await data.close()
        return try JSONEncoder().encode(report)
    }
}
