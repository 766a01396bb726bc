// `rockpool status` and `rockpool stats`: what the server says of itself (contract §4).
import ArgumentParser

struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Whether everything is synced, and which upstreams are there.")
    @OptionGroup var options: ReadingOptions
    @OptionGroup var watching: WatchOptions

    func run() async throws {
        let client = try options.common.client()
        try await watching.looking { try options.print(try await client.send(.get("/v1/status")), as: StatusReport.self) }
    }
}

struct StatsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "stats", abstract: "Counts, hit ratio and storage of the running server.")
    @OptionGroup var options: ReadingOptions
    @OptionGroup var watching: WatchOptions

    func run() async throws {
        let client = try options.common.client()
        try await watching.looking { try options.print(try await client.send(.get("/v1/stats")), as: StatsReport.self) }
    }
}
