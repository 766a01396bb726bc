// The outbox of a stopped server is read, shown and exported (docs/reference/cli.md#calling).
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite struct StoppedOutboxTests {
    @Test func whatWaitsIsShownAndExported() async throws {
        let server = try await ServerProcess.start(ServerSettings(upstream: FreePort.next()))
        let fields = ["Content-Type: application/json", "Authorization: Bearer topsecret"]
        try await #expect(
            Curl.send("POST", "http://\(server.gateway)/v1/notes", fields: fields, body: "{\"text\": \"waits\"}").status == 202)
        let id = try #require(try await server.operations().first?["id"]?.string)
        let forgotten = try await server.command("fleet", "forget", "shop-3")
        #expect(forgotten.status == 1 && forgotten.errors.contains("no node of the fleet"), "\(forgotten)")
        try await server.stop()
        let shown = try await server.command("outbox", "show", id, "--format", "json")
        #expect(shown.status == 0 && shown.output.contains(id), "\(shown.errors)")
        let exported = try await server.command("outbox", "export")
        #expect(exported.status == 0 && exported.output.contains(id) && exported.output.contains("waits"), "\(exported.errors)")
        #expect(!exported.output.contains("topsecret"))
        // It is in no fleet.
        let rejoined = try await server.command("fleet", "rejoin")
        #expect(rejoined.status == 1 && rejoined.errors.contains("is in no fleet"), "\(rejoined.errors)")
        // Nothing has changed.
        let again = try await server.command("outbox", "export")
        #expect(again.output == exported.output)
    }

    /// From a directory whose server is gone into another server, running and stopped: what waited waits there, once, under its id.
    @Test func anExportIsImportedElsewhere() async throws {
        let gone = try await ServerProcess.start(ServerSettings(upstream: FreePort.next()))
        for number in 1...2 {
            try await #expect(
                Curl.send("POST", "http://\(gone.gateway)/v1/notes", fields: ["Content-Type: text/plain"], body: "waits \(number)").status
                    == 202)
        }
        let ids = try await gone.operations().compactMap { $0["id"]?.string }
        try await gone.stop()
        let scratch = try Scratch()
        let file = scratch.path + "/outbox.jsonl"
        try await #expect(gone.command("outbox", "export", "--output", file).status == 0)
        let server = try await ServerProcess.start(ServerSettings(upstream: FreePort.next()))
        // A file that breaks off changes nothing.
        let half = try scratch.write(String(try Files.text(of: file).dropLast(10)), to: "half.jsonl")
        let refused = try await server.command("outbox", "import", half)
        #expect(refused.status == 1 && refused.errors.contains("half.jsonl:2: "), "\(refused)")
        #expect(try await server.operations().isEmpty)
        for _ in 1...2 {
            let imported = try await server.command("outbox", "import", file, "--format", "json")
            #expect(imported.status == 0, "\(imported)")
        }
        #expect(try await server.operations().compactMap { $0["id"]?.string } == ids)
        try await server.stop()
        // The same with the server stopped.
        let stopped = try await server.command("outbox", "import", file)
        #expect(stopped.status == 0 && stopped.output.contains("already there"), "\(stopped)")
    }
}
