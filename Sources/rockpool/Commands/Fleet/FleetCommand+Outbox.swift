// `rockpool fleet outbox` and `fleet conflicts`: what waits in a fleet, with the nodes that have to do with it
// (docs/reference/cli.md#fleet-outbox).
import ArgumentParser
import RockpoolCore

extension FleetCommand {
    struct Outbox: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "outbox", abstract: "List the operations of all nodes; only open ones without --state.",
            discussion: .examples(
                "rockpool fleet outbox", "rockpool fleet outbox --state all --upstream notes",
                after: "TAKEN BY is the node that a client wrote to, SENT BY the one that has the lane of the operation in flight."))
        @OptionGroup var options: ReadingOptions
        @OptionGroup var selection: OutboxSelection

        func run() async throws {
            try await FleetCommand.list(
                .get("/v1/operations", query: selection.query), options: options, as: FleetOutboxReport.self)
        }
    }

    struct Conflicts: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "conflicts", abstract: "List the conflicts of all nodes, the newest first; only open ones without --state.",
            discussion: .examples(
                "rockpool fleet conflicts", after: "A conflict is resolved at any node: rockpool conflicts resolve ID."))
        @OptionGroup var options: ReadingOptions
        @Option(name: .long, help: "open, closed or all.") var state: ConflictsCommand.List.Extent?
        @Option(name: .long, help: "Only conflicts of this upstream.", completion: Completions.upstreams) var upstream: String?

        func run() async throws {
            var query: [String: String] = [:]
            query["state"] = state?.rawValue
            query["upstream"] = upstream
            try await FleetCommand.list(.get("/v1/conflicts", query: query), options: options, as: FleetConflictsReport.self)
        }
    }

    /// Prints a list with the nodes of each item; for people also which nodes keep writes that they have not handed over.
    private static func list<Report: TabularReport>(_ call: AdminCall, options: ReadingOptions, as type: Report.Type) async throws {
        let client = try options.common.client()
        var call = call
        call.query["nodes"] = "true"
        try options.print(try await client.pages(of: call), as: type)
        guard options.format == .table else { return }
        let nodes = try await client.send(.get("/v1/fleet/nodes")).decoded(as: FleetReport.self)
        if nodes.items.isEmpty, let note = nodes.emptyNote { Display.output.print(note) }
        for node in nodes.items where node.held > 0 {
            Display.output.print("\(node.name) keeps \(node.held.counted("write")) not handed over yet".inOneLine)
        }
    }
}
