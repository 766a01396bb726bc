// `rockpool fleet nodes`: the nodes that share an outbox (docs/reference/cli.md#fleet).
import ArgumentParser

struct FleetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fleet", abstract: "Show the nodes that share an outbox.", discussion: .examples("rockpool fleet nodes"),
        subcommands: [Nodes.self])

    struct Nodes: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "nodes", abstract: "Show every node of the fleet.",
            discussion: .examples(
                "rockpool fleet nodes", after: "The outbox and the conflicts of the fleet are shown at any node by their own commands."))
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            let client = try options.common.client()
            try options.print(try await client.send(.get("/v1/fleet/nodes")), as: FleetReport.self)
        }
    }
}
