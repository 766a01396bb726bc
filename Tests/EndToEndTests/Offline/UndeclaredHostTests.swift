// Writes to an undeclared host, under `defaults.queue_writes` (docs/reference/configuration.md#defaults).
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct UndeclaredHostTests {
    @Test func writesWaitForAnUndeclaredHostAcrossARestart() async throws {
        let api = try await NotesServer.start(seed: [["title": "first"]], settings: NotesSettings())
        var settings = ServerSettings()
        settings.defaults = ["queue_writes": true]
        let server = try await ServerProcess.start(settings)
        let fields = ["Content-Type: application/json", "Idempotency-Key: \"once\""]
        func send(_ title: String) async throws -> Curl {
            try await Curl.send(
                "PUT", "http://127.0.0.1:\(api.port)/v1/notes/1", proxy: server.proxy, fields: fields, body: #"{"title":"\#(title)"}"#)
        }
        await api.stop()
        let reply = try await send("later")
        #expect(reply.status == 202, "\(reply.text)")
        let id = try #require(reply["rockpool-operation"])

        let host = "http://127.0.0.1:\(api.port)"
        let upstreams = try await server.get("/v1/status").json?["upstreams"]?.array
        #expect(upstreams?.first?["name"]?.string == host)
        try await server.kill()
        try await server.start()
        try await api.restart()
        _ = try await server.operation(id, reaching: "delivered")
        #expect(api.note(id: "1")?.members["title"] == "later" && api.effects(forKey: "once") == 1)
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await api.stop()
    }
}
