// `rockpool remove NAME`: one API less for the Rockpool of this machine, wherever it runs (docs/reference/cli.md#remove).
import ArgumentParser
import Foundation
import RockpoolCore

struct RemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Take back an API: out of the file of the running server, which applies it at once.",
        discussion: """
            Shows the lines that it deletes, and closes the gateway. While writes to the API are not delivered, nothing is changed without \
            --yes. They stay in the outbox then, and are sent once an upstream of the same name is declared.

            EXAMPLES
              rockpool remove notes --dry-run
              rockpool remove https://api.example.com
            """)
    @Argument(help: "The name of the upstream, or its URL.", completion: Completions.upstreams) var upstream: String
    @Flag(name: .long, help: "Show the lines, change nothing.") var dryRun = false
    @Flag(name: .long, help: "Also while writes are not delivered; they stay in the outbox.") var yes = false
    @OptionGroup var common: CommonOptions

    func run() async throws {
        let change = try await ConfigurationChange(common)
        let known = try named(in: change)
        if !dryRun { try change.checkWritable() }
        let (edited, lines) = try change.edit.removing(known.name)
        let open = try await openWrites(to: known.name, by: change.server)
        let list = "rockpool outbox ls --upstream \(known.name)"
        if open > 0, !yes {
            let what = open.counted(
                "write to \(known.name) is not delivered; deliver or discard it first",
                "writes to \(known.name) are not delivered; deliver or discard them first")
            let message = "\(what) (\(list)), or keep the outbox as it is by --yes"
            guard dryRun else { throw CommandFailure(.failed, "nothing is changed: \(message)".inOneLine) }
            Display.error.print("rockpool: \(message)".inOneLine)
        }
        change.show(lines, mark: "-")
        guard !dryRun else { return }
        try await change.apply(edited)
        if open > 0 {
            let what = open.counted("write to \(known.name) stays", "writes to \(known.name) stay")
            Display.output.print("\(what) in the outbox until \(known.name) is declared again: \(list)".inOneLine)
        }
        guard change.server != nil else { return }
        let gateway = known.gateway.map { "; the gateway \($0) is closed" } ?? ""
        Display.output.print("\(known.name) is removed\(gateway)".inOneLine)
        Display.output.print("what is stored of it goes with: rockpool cache purge --prefix \(known.place)/".inOneLine)
    }

    /// The upstream of that name or URL in the file.
    private func named(in change: ConfigurationChange) throws -> Upstream {
        let address = upstream.contains("://") ? APIAddress(upstream) : nil
        func meant(of all: [Upstream]) throws -> Upstream? {
            try address.map { try $0.owner(among: all) } ?? all.first { $0.name == upstream }
        }
        if let known = try meant(of: change.before.upstreams) { return known }
        if let known = try change.server.flatMap({ try meant(of: $0.configuration.upstreams) }) {
            throw CommandFailure(
                .failed, "\(known.name) is not declared in \(change.file), but by how the server was started: start it without".inOneLine)
        }
        let names = change.before.upstreams.map(\.name)
        let others = names.isEmpty ? "but none at all" : "but \(names.joined(separator: ", "))"
        throw CommandFailure(.failed, "\(change.file) declares no upstream \"\(upstream)\", \(others)".inOneLine)
    }

    /// The number of writes to an upstream that have not ended, in the outbox of the server, or of the next start.
    private func openWrites(to name: String, by server: RunningServer?) async throws -> Int {
        let call = AdminCall.get("/v1/operations", query: ["upstream": name])
        if let server { return try await Self.count(call, through: server.client) }
        do {
            return try await common.withStores(having: { access($0.stateDir + "/data.sqlite", F_OK) == 0 }) { client in
                try await Self.count(call, through: client)
            }
        } catch let failure as AdminFailure where failure.isNotRunning {
            return 0
        }
    }

    private static func count(_ call: AdminCall, through client: AdminClient) async throws -> Int {
        try await client.pages(of: call).decoded(as: OperationListReport.self).items.count
    }
}
