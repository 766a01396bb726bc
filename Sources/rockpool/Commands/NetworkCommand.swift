// `rockpool network`: reachability, and the manual switch (docs/reference/cli.md#network).
import ArgumentParser

struct NetworkCommand: AsyncParsableCommand {
    enum Mode: String, CaseIterable, ExpressibleByArgument { case auto, offline, online }

    static let configuration = CommandConfiguration(
        commandName: "network", abstract: "Show the reachability of the upstreams, or set the network mode.",
        discussion: .examples(
            "rockpool network",
            "rockpool network offline                             # for a flight",
            "rockpool network auto                                # and back",
            "rockpool network offline --upstream notes",
            after: "auto: as detected. offline: send nothing. online: always try the upstream. Without a mode the current one is shown."))
    @Argument(help: "auto, offline or online.")
    var mode: Mode?
    @Option(name: .long, help: "Only this upstream.", completion: Completions.upstreams)
    var upstream: String?
    @OptionGroup var options: ReadingOptions

    func validate() throws {
        if upstream != nil, mode == nil { throw ValidationError("--upstream needs a mode: auto, offline or online") }
    }

    func run() async throws {
        let client = try options.common.client()
        let call: AdminCall =
            if let mode {
                .put(
                    "/v1/network",
                    body: .map([.init("mode", .text(mode.rawValue)), .init("upstream", upstream.map { .text($0) } ?? .null)]))
            } else {
                .get("/v1/network")
            }
        try options.print(try await client.send(call), as: NetworkReport.self)
    }
}
