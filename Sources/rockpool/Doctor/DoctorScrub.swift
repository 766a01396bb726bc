// `rockpool doctor --scrub` and `--recover DIR`: checks the stores' integrity and recovers data (docs/storage.md#scrub).
import Foundation
import Logging
import RockpoolCore
import RockpoolStore
import Synchronization

/// The two modes of doctor that read whole stores.
enum DoctorScrub {
    /// Scrubs through the running server, or opens the stores if none runs; prints the report.
    /// - Throws: `CommandFailure(.failed, …)` if anything was wrong, also where the scrub has repaired it.
    static func runScrub(options: ReadingOptions, dryRun: Bool) async throws {
        let configuration = try options.common.load().configuration
        let client = try options.common.client()
        let body = ConfigDocument.map([.init("dryRun", .bool(dryRun))])
        let reply: AdminReply
        do {
            reply = try await Waiting.on("scrubbing") { try await client.send(.post("/v1/storage/scrub", body: body), timeout: .forever) }
        } catch let failure as AdminFailure where failure.isNotRunning {
            reply = AdminReply(
                status: 200, body: try JSONEncoder.stable.encode(await offline(configuration: configuration, dryRun: dryRun)))
        }
        try options.print(reply, as: ScrubReportTable.self)
        let report = try reply.decoded(as: ScrubReport.self)
        guard !report.isClean else { return }
        throw CommandFailure(.failed, dryRun ? "the stores are damaged" : "the stores were damaged; the report says what was repaired")
    }

    /// Recovers a stopped server's state directory into another one; prints the report.
    static func runRecover(options: ReadingOptions, into directory: String) async throws {
        let configuration = try options.common.load().configuration
        let report = try await Waiting.on("recovering") {
            try await StartFailure.naming {
                try await DataStore.recover(
                    from: configuration.storage.stateDir, into: directory, seal: BodySeal.kept(configuration.storage) ?? .off)
            }
        }
        try options.print(AdminReply(status: 200, body: try JSONEncoder.stable.encode(report)), as: RecoveryReportTable.self)
    }

    /// Scrubs with the server stopped. A dry run opens nothing for writing.
    private static func offline(configuration: Configuration, dryRun: Bool) async throws -> ScrubReport {
        let seen = Mutex(ScrubProgress(store: "cache"))
        let note: @Sendable (ScrubProgress) -> Void = { step in seen.withLock { $0 = step } }
        return try await Waiting.on(seen.withLock { "scrubbing the \($0.store): \($0.checked) of \($0.total) bodies" }) {
            try await StartFailure.naming {
                dryRun
                    ? try await look(configuration: configuration, note: note) : try await scrub(configuration: configuration, note: note)
            }
        }
    }

    private static func look(
        configuration: Configuration, note: @escaping @Sendable (ScrubProgress) -> Void
    ) async throws -> ScrubReport {
        let (storage, now) = (configuration.storage, WallClock.now())
        return try await DataStore.whileStopped(storage.stateDir) {
            let seal = BodySeal.kept(storage)
            let cached = await CacheStore.scrubWhileStopped(storage.cacheDir, seal: seal, now: now, progress: note)
            return cached.merged(with: await DataStore.scrubWhileStopped(storage.stateDir, seal: seal, now: now, progress: note))
        }
    }

    /// Opens the data store first: its lock shows if a server runs.
    private static func scrub(
        configuration: Configuration, note: @escaping @Sendable (ScrubProgress) -> Void
    ) async throws -> ScrubReport {
        let (storage, now) = (configuration.storage, WallClock.now())
        let kept = try await scrubData(storage: storage, now: now, note: note)
        let cache = try CacheStore.open(
            directory: storage.cacheDir, settings: storage, categories: configuration.categories, seal: BodySeal.kept(storage) ?? .off,
            clock: WallClock.now, logger: Logger(label: "rockpool", level: .error))
        let cached = await cache.scrub(now: now, progress: note)
        await cache.close()
        return cached.merged(with: kept)
    }

    /// A data store that is too damaged to be opened is read from outside.
    private static func scrubData(
        storage: StorageSettings, now: Timestamp, note: @escaping @Sendable (ScrubProgress) -> Void
    ) async throws -> ScrubReport {
        let data: DataStore
        do {
            data = try DataStore.open(
                directory: storage.stateDir, settings: storage, outbox: nil, clock: WallClock.now,
                logger: Logger(label: "rockpool", level: .error))
        } catch DataStoreError.corrupt {
            return await DataStore.scrubWhileStopped(storage.stateDir, seal: BodySeal.kept(storage), now: now, progress: note)
        }
        let report = await data.scrub(now: now, progress: note)
        await data.close()
        return report
    }
}
