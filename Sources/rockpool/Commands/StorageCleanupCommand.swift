// `rockpool storage-cleanup`: through the running server, or directly on the stores if none runs (docs/storage.md#cleanup).
import ArgumentParser
import Foundation
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
