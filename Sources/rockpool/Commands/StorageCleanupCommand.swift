// `rockpool storage-cleanup`: through the running server, or directly on the stores if none runs (docs/storage.md#cleanup).
import ArgumentParser
import Foundation
import Logging
import RockpoolCore
import RockpoolStore

struct StorageCleanupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "storage-cleanup",
        abstract: "Remove expired data and free disk space.",
        discussion: .examples(
            "rockpool storage-cleanup --dry-run  # what would be removed, and what is kept",
            "rockpool storage-cleanup --aggressive",
            "rockpool storage-cleanup --category assets --older-than 7d",
            after: "Works with the server running or stopped. Queued writes are never removed."))
    @OptionGroup var options: ReadingOptions
    @Flag(name: .long, help: "Also remove every stale entry, and all assets that are not pinned.")
    var aggressive = false
    @Flag(name: .long, help: "Report what would be removed, and change nothing.")
    var dryRun = false
    @Option(name: .long, help: "Only entries of this category.")
    var category: String?
    @Option(name: .long, help: "Only entries unused for this time, such as 7d.", transform: TimeSpan.argument)
    var olderThan: TimeSpan?
    @Flag(name: .long, help: "List each entry that is removed.")
    var list = false
    @Flag(name: .long, help: "Also remove offline copies of APIs that are away, without a question.")
    var yes = false
    @Flag(name: .long, help: "Rewrite the databases, even if that frees little space.")
    var vacuum = false

    var request: CleanupRequest {
        CleanupRequest(
            aggressive: aggressive, dryRun: dryRun, category: category, olderThan: olderThan, vacuum: vacuum, includesHeld: yes, lists: list
        )
    }

    func run() async throws {
        let (configuration, _) = try await options.common.effective()
        SQLiteTemporaries.keep(in: configuration.storage)
        let names = configuration.categories.map(\.name)
        if let category, !names.contains(category) {
            throw ValidationError(Contradiction.unknownCategory(named: category, at: "--category", known: names).message)
        }
        let client = try options.common.client()
        let bar = ProgressBar(dryRun ? "looking for removable data" : "cleaning up")
        let watch = Task { await Self.follow(client, on: bar) }
        defer { watch.cancel() }
        func perform(_ request: CleanupRequest) async throws -> AdminReply {
            try await Waiting.on(bar.text) {
                try await Self.perform(request, with: client) { request in
                    try await OfflineCleanup.run(configuration: configuration, request: request) { progress in
                        bar.show(
                            progress.done, of: progress.of,
                            words: Self.words(for: progress.step, entries: progress.removed.entries, bytes: progress.removed.bytes))
                    }
                }
            }
        }
        let report = try await perform(request)
        try options.print(report, as: CleanupReportTable.self)
        let held = try report.decoded(as: CleanupReportTable.self).held ?? [:]
        guard aggressive, !dryRun, !yes, !held.isEmpty, Question.canAsk else { return }
        let copies = held.sorted { $0.key < $1.key }.map {
            "\(($0.value.entries ?? 0).counted("offline copy", "offline copies")) of \($0.key)"
        }
        .joined(separator: ", ")
        guard Question.ask("remove \(copies) too? They cannot be read until it is back") else { return }
        var more = request
        more.includesHeld = true
        try options.print(try await perform(more), as: CleanupReportTable.self)
    }

    /// Polls the progress of a running server's cleanup and shows it on the terminal until the caller cancels the task.
    private static func follow(_ client: AdminClient, on bar: ProgressBar) async {
        while Display.error.isTerminal, (try? await Task.sleep(for: .milliseconds(500))) != nil {
            guard let reply = try? await client.send(.get("/v1/storage")), let run = try? JSONValue.parse(Array(reply.body))["cleanup"],
                let done = run["done"]?.integer, let of = run["of"]?.integer
            else { continue }
            let (entries, bytes) = (run["removedEntries"]?.integer ?? 0, run["removedBytes"]?.integer ?? 0)
            bar.show(
                Int(clamping: done), of: Int(clamping: of),
                words: words(for: run["step"]?.string ?? "", entries: Int(clamping: entries), bytes: bytes))
        }
    }

    private static func words(for step: String, entries: Int, bytes: Int64) -> String {
        entries == 0 ? step : "\(step), \(entries.counted("entry", "entries")) removed (\(ForPeople.bytes(bytes)))"
    }

    /// Cleans up through the server; uses `offline` only if no server answers on its socket. A slow or refusing server is running.
    static func perform(
        _ request: CleanupRequest, with client: AdminClient, offline: (CleanupRequest) async throws -> Data
    ) async throws -> AdminReply {
        do {
            return try await client.send(.post("/v1/storage/cleanup", body: request.body), timeout: .forever)
        } catch let failure as AdminFailure where failure.isNotRunning {
            return AdminReply(status: 200, body: try await offline(request))
        }
    }
}

extension TimeSpan {
    /// Parses the value of an option. Throws the message for the user.
    static func argument(_ text: String) throws -> TimeSpan {
        do { return try TimeSpan(parsing: text) } catch { throw ValidationError("\(error)") }
    }
}

/// The options of `storage-cleanup`.
struct CleanupRequest: Hashable, Sendable {
    var aggressive = false
    var dryRun = false
    /// Only entries of this category.
    var category: String?
    /// Only entries unused for this time.
    var olderThan: TimeSpan?
    /// A full VACUUM, regardless of the share of free pages.
    var vacuum = false
    /// Offline copies too that are held (`CleanupHold`).
    var includesHeld = false
    /// A list of what is removed.
    var lists = false
}

extension CleanupRequest {
    var options: CleanupOptions {
        CleanupOptions(
            aggressive: aggressive, dryRun: dryRun, vacuum: vacuum, includesHeld: includesHeld, lists: lists, category: category,
            olderThan: olderThan)
    }

    /// The body of `POST /v1/storage/cleanup`.
    var body: ConfigDocument {
        var members: [ConfigDocument.Member] = [
            .init("aggressive", .bool(aggressive)), .init("dryRun", .bool(dryRun)), .init("vacuum", .bool(vacuum)),
        ]
        if includesHeld { members.append(.init("includesHeld", .bool(true))) }
        if lists { members.append(.init("list", .bool(true))) }
        if let category { members.append(.init("category", .text(category))) }
        if let olderThan { members.append(.init("olderThanSeconds", .int(Int(clamping: olderThan.seconds)))) }
        return .map(members)
    }
}

/// Cleanup with the server stopped: takes the store's lock and does the server's work (docs/storage.md#cleanup).
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
