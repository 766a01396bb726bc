// `rockpool stats` (docs/reference/cli.md).
import ArgumentParser

struct StatsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats", abstract: "Show counters, hit ratio and storage usage.",
        discussion: .examples(
            "rockpool stats",
            "rockpool stats --format json | grep hitRatio"))
    @OptionGroup var options: ReadingOptions
    @OptionGroup var watching: WatchOptions

    func run() async throws {
        let client = try options.common.client()
        try await watching.looking { try options.print(try await client.send(.get("/v1/stats")), as: StatsReport.self) }
    }
}
