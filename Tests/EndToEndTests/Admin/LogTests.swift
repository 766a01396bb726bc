// The log on stderr: its formats, and the lines about queued writes (docs/guide/operating.md#log).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(2))) struct LogTests {
    /// Runs `body` with a server whose upstream refuses every write.
    private func with(format: String, _ body: (ServerProcess) async throws -> Void) async throws {
        // Each refusal has a text of its own, so that they are no mass refusal (docs/outbox.md#mass-refusal).
        let origin = try await RawServer.answering { request in
            if request.hasPrefix("GET") { return "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" }
            let text = request.prefix { !$0.isNewline }
            return "HTTP/1.1 422 No\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)"
        }
        var settings = ServerSettings(upstream: origin.port)
        settings.log = ["format": .string(format)]
        let server = try await ServerProcess.start(settings)
        try await body(server)
        try await #expect(server.stop() == .exit(0))
        await origin.stop()
    }

    /// Queues writes while the network is switched off, and has them refused. Returns their ids.
    private func refused(_ count: Int, _ server: ServerProcess) async throws -> [String] {
        try await #expect(server.change("PUT", "/v1/network", ["mode": "offline"]).status < 300)
        var ids: [String] = []
        for number in 0..<count {
            let reply = try await Curl.send(
                "PUT", "http://\(server.gateway)/v1/notes/\(number)?token=hidden",
                fields: ["Content-Type: application/json", "Authorization: Bearer hidden"], body: #"{"title":"hidden"}"#)
            ids.append(try #require(reply["rockpool-operation"], "\(reply.heads)"))
        }
        try await #expect(server.change("PUT", "/v1/network", ["mode": "auto"]).status < 300)
        try await eventually("all refused") { try await server.operations("dead").count == count }
        return ids
    }

    @Test func aWriteThatNeedsAPersonIsOneLineOfJSON() async throws {
        try await with(format: "json") { server in
            let id = try #require(try await refused(1, server).first)
            try await eventually("the line") { server.errors.contains(id) }
            let lines = server.errors.split(separator: "\n").filter { $0.contains(id) }
            #expect(lines.count == 1, "\(lines)")
            let line = try JSONValue.parse(Array(lines[0].utf8))
            #expect(line["level"] == "warning" && line["operation"]?.string == id && line["upstream"] == "notes")
            #expect(line["method"] == "PUT" && line["path"] == "/v1/notes/0" && line["status"] == "422")
            #expect(line["next"]?.string == "rockpool outbox show \(id)" && line["reason"]?.string != nil)
            #expect(line["at"]?.string.flatMap { RFC3339.parse($0) } != nil && line["at"]?.string?.count == 24)
            #expect(!server.errors.contains("hidden"))
        }
    }

    @Test func manyAreCountedAndTextSaysTheSame() async throws {
        try await with(format: "text") { server in
            let ids = try await refused(30, server)
            let lines = server.errors.split(separator: "\n").filter { $0.contains(" warning rockpool: a queued write is dead ") }
            #expect(lines.count == 20 && lines.allSatisfy { $0.contains("upstream=notes") && $0.contains("method=PUT") })
            #expect(lines[0].contains("next=\"rockpool outbox show ") && ids.contains { lines[0].contains($0) }, "\(lines[0])")
            #expect(RFC3339.parse(String(lines[0].prefix(24))) != nil, "\(lines[0])")
            #expect(!server.errors.contains("hidden"))
        }
    }
}
