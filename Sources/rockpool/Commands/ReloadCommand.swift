// `rockpool reload`: the running server reads its configuration again (docs/reference/cli.md#reload).
import ArgumentParser

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
