// `rockpool storage-cleanup`: through the running server, or on the stores themselves when none runs (storage.md §6).
import ArgumentParser
import Foundation
import RockpoolCore

struct StorageCleanupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "storage-cleanup",
        abstract: "Remove what is expired and give the disk its room back.",
        discussion: "Works with the server running, through it, or stopped. Writes that wait are never touched.")
    @OptionGroup var options: ReadingOptions
    @Flag(name: .long, help: "Also every stale entry, and all assets that are not pinned.")
    var aggressive = false
    @Flag(name: .long, help: "Take the same decisions and change nothing.")
    var dryRun = false
    @Option(name: .long, help: "Only entries of this category.")
    var category: String?
    @Option(name: .long, help: "Only what was not used for so long, such as 7d.")
    var olderThan: TimeSpan?
    @Flag(name: .long, help: "Rewrite the databases, however little that frees.")
    var vacuum = false

    var request: CleanupRequest {
        CleanupRequest(aggressive: aggressive, dryRun: dryRun, category: category, olderThan: olderThan, vacuum: vacuum)
    }

    func run() async throws {
        let configuration = try options.common.load().configuration
        let names = configuration.categories.map(\.name)
        if let category, !names.contains(category) {
            throw ValidationError(Contradiction.unknownCategory(category, at: "--category", known: names).message)
        }
        let client = AdminClient(stateDirectory: configuration.storage.stateDir)
        let doing = dryRun ? "looking what could go" : "cleaning up"
        let report = try await Waiting.on(doing) {
            try await Self.perform(request, with: client) { try await OfflineCleanup.run(configuration, $0) }
        }
        try options.print(report, as: CleanupReportTable.self)
    }

    /// Through the server; by `offline` only when nobody answers on its socket. A server that answers slowly or says no is there.
    static func perform(
        _ request: CleanupRequest, with client: AdminClient, offline: (CleanupRequest) async throws -> Data
    ) async throws -> AdminReply {
        do {
            return try await client.send(.post("/v1/storage/cleanup", request.body), timeout: .forever)
        } catch AdminFailure.notRunning {
            return AdminReply(status: 200, body: try await offline(request))
        }
    }
}

extension TimeSpan: ExpressibleByArgument {
    public init?(argument: String) {
        guard let span = try? TimeSpan(parsing: argument) else { return nil }
        self = span
    }
}
