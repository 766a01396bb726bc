// `rockpool status` and `rockpool stats`: the state and counters of the server (docs/reference/cli.md#status).
import ArgumentParser

struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show the sync state and the reachability of the upstreams.")
    @OptionGroup var options: ReadingOptions
    @OptionGroup var watching: WatchOptions

    func run() async throws {
        let client = try options.common.client()
        try await watching.looking { try options.print(try await client.send(.get("/v1/status")), as: StatusReport.self) }
    }
}
