// `rockpool demo`: shows all main features on this machine, without any setup (docs/reference/cli.md#demo).
import ArgumentParser
import Foundation
import NotesAPI
import RockpoolCore

struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo", abstract: "Show all main features: cached reads, an outage, queued writes, a crash, delivery, conflicts.",
        discussion: .examples(
            "rockpool demo",
            "rockpool demo --keep  # and look at the dashboard",
            "rockpool demo --api   # only an API to try things with",
            after: "Starts an embedded notes API and a proxy in front of it. Exits 0 only if every step succeeds."))
    @Flag(name: .long, help: "Keep the API and the proxy running at the end, until interrupted.")
    var keep = false
    @Flag(name: .long, help: "Only run a notes API, http://127.0.0.1:8000/v1/notes, until interrupted.")
    var api = false
    @Option(name: .long, help: "The port of --api.") var port = 8000

    func validate() throws {
        if api, keep { throw ValidationError("--api and --keep exclude each other") }
        guard (1...65535).contains(port) else { throw ValidationError("--port is a number up to 65535") }
    }

    func run() async throws {
        ProcessSetUp.prepare()
        if api { return try await serveAPI() }
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

    /// An API without a proxy, which is at its next start as it was.
    private func serveAPI() async throws {
        guard HostAndPort("127.0.0.1:\(port)")?.isFree == true else {
            throw CommandFailure(.failed, "port \(port) is in use; take another one: rockpool demo --api --port \(port + 1)")
        }
        let kept = DemoNotes(port: port, environment: ProcessInfo.processInfo.environment)
        let (store, isKept) = try kept.store()
        let notes = try await StartFailure.naming {
            try await NotesServer.start(port: port, store: store, keep: { changed in if isKept { kept.keep(changed) } })
        }
        let place = isKept ? "its notes are kept in \(kept.file)" : "its notes are in memory only"
        Display.output.print("a notes API: \(notes.origin.url)/v1/notes; \(place)".inOneLine)
        await Interruption.wait()
        await notes.stop()
    }
}
