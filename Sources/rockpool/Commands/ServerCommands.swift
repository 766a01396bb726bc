// Commands that make one call to the running server: `network`, `stats`, `reload`, `notify` and `dashboard`
// (docs/reference/cli.md#commands).
import ArgumentParser
import Foundation

/// `rockpool network`: reachability, and the manual switch (docs/reference/cli.md#network).
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

/// `rockpool stats` (docs/reference/cli.md).
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

/// `rockpool reload`: the running server reads its configuration again (docs/reference/cli.md#reload).
struct ReloadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reload", abstract: "Let the running server read its configuration again.",
        discussion: .examples(
            "rockpool config check && rockpool reload",
            after: "A configuration with an error changes nothing. The status is 1 if a changed key needs a restart."))
    @OptionGroup var common: CommonOptions

    func run() async throws {
        struct Outcome: Decodable {
            var waiting: [String]
            var partly: [String]
        }
        let outcome = try await common.client().send(.post("/v1/reload")).decoded(as: Outcome.self)
        Display.output.print("the configuration is reloaded")
        for key in outcome.waiting { Display.output.print("\(key) changes with a restart".inOneLine) }
        for key in outcome.partly {
            Display.output.print("\(key) applies to serving now; eviction and cleanup change with a restart".inOneLine)
        }
        guard outcome.waiting.isEmpty else {
            throw CommandFailure(.failed, "to change the rest: sudo systemctl restart rockpool, or stop the server and start it again")
        }
    }
}

/// `rockpool notify test`: sends a test by every rule of `notify` (docs/reference/cli.md#notify).
struct NotifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "notify", abstract: "Test the notices to operators.", discussion: .examples("rockpool notify test"),
        shouldDisplay: false, subcommands: [Test.self])

    struct Test: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "test", abstract: "Send a test by every rule of notify.",
            discussion: .examples(
                "rockpool notify test",
                after: "Webhooks are waited for ten seconds. Exits with 1 if one of them failed, or if there is no rule."))
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            let client = try options.common.client()
            let reply = try await client.send(.post("/v1/notify/test"))
            let report = try reply.decoded(as: NoticeTestReport.self)
            try options.print(reply, as: NoticeTestReport.self)
            guard !report.items.isEmpty else { throw CommandFailure(.failed, "the configuration has no rule; add one under notify") }
            let failed = report.items.filter { $0.outcome == "failed" }.count
            if failed > 0 { throw CommandFailure(.failed, "\(failed) of \(report.items.count) failed") }
        }
    }
}

/// `rockpool dashboard`: opens the dashboard in a browser, with the right to change things (docs/reference/cli.md#dashboard).
struct DashboardCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dashboard", abstract: "Open the dashboard in a browser, with a one-time code in place of the admin token.",
        discussion: .examples(
            "rockpool dashboard",
            "rockpool dashboard --print  # the address, with its code",
            after: "The code is valid for a minute. Without a browser the address is printed."))
    @Flag(name: .long, help: "Print the address and open nothing.") var print = false
    @OptionGroup var common: CommonOptions

    func run() async throws {
        struct Code: Decodable { var url: String }
        let code = try await common.client().send(.post("/v1/dashboard/codes")).decoded(as: Code.self)
        let environment = ProcessInfo.processInfo.environment
        let hasScreen = environment["DISPLAY"] != nil || environment["WAYLAND_DISPLAY"] != nil || environment["BROWSER"] != nil
        guard !print, hasScreen, let opener = Tool("xdg-open") ?? Tool("gio"), opener.run(Self.arguments(of: opener, code.url)).status == 0
        else {
            Display.output.print(code.url)
            return
        }
        Display.output.print("the dashboard is open in your browser")
    }

    private static func arguments(of opener: Tool, _ url: String) -> [String] { opener.path.hasSuffix("/gio") ? ["open", url] : [url] }
}
