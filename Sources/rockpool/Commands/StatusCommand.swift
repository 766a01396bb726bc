// `rockpool status` and `rockpool stats`: the state and counters of the server (docs/reference/cli.md#status).
import ArgumentParser

struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show the sync state and the reachability of the upstreams, and the next step.",
        discussion: """
            EXAMPLES
              rockpool status
              rockpool status --check || echo "a write waits for a decision"
            """)
    @Flag(name: .long, help: "Exit with 1 if a conflict waits for a decision, a write is dead, or writes are refused for want of room.")
    var check = false
    @OptionGroup var options: ReadingOptions
    @OptionGroup var watching: WatchOptions

    func run() async throws {
        let client = try options.common.client()
        if check {
            let reply = try await client.send(.get("/v1/status"))
            try options.print(reply, as: StatusReport.self)
            if try reply.decoded(as: StatusReport.self).needsPerson { throw ExitCode(ExitStatus.failed.rawValue) }
            return
        }
        try await watching.looking { try options.print(try await client.send(.get("/v1/status")), as: StatusReport.self) }
    }
}
