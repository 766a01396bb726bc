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
}
