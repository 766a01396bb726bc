// `rockpool notify test`: sends a test by every rule of `notify` (docs/reference/cli.md#notify).
import ArgumentParser

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
