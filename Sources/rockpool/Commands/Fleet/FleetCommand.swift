// `rockpool fleet`: the nodes that share an outbox, and the sites that report to a collector (docs/reference/cli.md#fleet).
import ArgumentParser

struct FleetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fleet", abstract: "Show the nodes that share an outbox, and collect the reports of sites.",
        discussion: .examples("rockpool fleet nodes", "rockpool fleet outbox", "rockpool fleet status --check"),
        shouldDisplay: false,
        subcommands: [Status.self, Nodes.self, Outbox.self, Conflicts.self, Collect.self, Add.self, Forget.self, Rejoin.self])

    struct Status: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "status", abstract: "Show the nodes of a fleet and the states of its outbox, or the sites of a collector.",
            discussion: .examples(
                "rockpool fleet status", "rockpool fleet status --check",
                after:
                    "At a collector, name its directory by --state-dir. With --check it exits with 1 if a site is silent, a node does not hold its lease, a write is dead, or a conflict "
                    + "waits."))
        @Flag(name: .long, help: "Exit with 1 if something needs a person.") var check = false
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            let reply = try await options.common.client().send(.get("/v1/fleet/status"))
            try options.print(reply, as: FleetStatusReport.self)
            if check, try reply.decoded(as: FleetStatusReport.self).needsPerson { throw ExitCode(ExitStatus.failed.rawValue) }
        }
    }

    struct Forget: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "forget", abstract: "Take a node that is gone off the list of its fleet.",
            discussion: .examples(
                "rockpool fleet forget shop-3",
                after: "Run it at another node. One that starts again is on the list again, with what it has."))
        @Argument(help: "The node\'s name or id; see rockpool fleet nodes.") var node: String
        @OptionGroup var common: CommonOptions

        func run() async throws {
            _ = try await common.client().send(.delete("/v1/fleet/nodes/" + AdminCall.segment(node)))
            Display.output.print("\(node) is forgotten".inOneLine)
        }
    }

    struct Nodes: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "nodes", abstract: "Show every node of the fleet.",
            discussion: .examples("rockpool fleet nodes"))
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            let client = try options.common.client()
            try options.print(try await client.send(.get("/v1/fleet/nodes")), as: FleetReport.self)
        }
    }
}
