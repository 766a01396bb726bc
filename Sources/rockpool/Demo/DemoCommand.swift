// `rockpool demo`: shows all main features on this machine, without any setup (docs/reference/cli.md#demo).
import ArgumentParser

struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo", abstract: "Show all main features: cached reads, an outage, queued writes, a crash, delivery, conflicts.",
        discussion: .examples(
            "rockpool demo",
            "rockpool demo --keep  # and look at the dashboard",
            after: "Starts an embedded notes API and a proxy in front of it. Exits 0 only if every step succeeds."))
    @Flag(name: .long, help: "Keep the API and the proxy running at the end, until interrupted.")
    var keep = false

    func run() async throws {
        ProcessSetUp.prepare()
        let stage = try await StartFailure.naming { try await DemoStage.set() }
        do {
            try await DemoStory(stage: stage, display: .output).tell()
        } catch {
            await stage.strike()
            throw CommandFailure(.failed, "the demo failed: \(error)")
        }
        Display.output.print("\nEvery step held.")
        if keep {
            Display.output.print("Still running; dashboard: http://\(stage.adminAddress)/. Interrupt to stop.")
            await Interruption.wait()
        }
        await stage.strike()
    }
}
