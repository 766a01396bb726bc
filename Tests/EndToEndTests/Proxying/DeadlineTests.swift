// No client can keep a connection by being idle, and a silent upstream is a failure, not a response (issue 2, item 2;
// docs/reference/configuration.md#proxy *timeouts*).
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct DeadlineTests {
    static let timeouts: JSONValue = ["timeouts": ["head": "1s", "body": "1s", "idle": "1s"]]

    private static let head = "POST /v1/notes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n"

    @Test(arguments: ["", "GET /v1/no", "GET /v1/notes/1 HTTP/1.1\r\nHost: loc", head, head + "{\"title\":"])
    func slowRequestsAreCutOff(_ text: String) async throws {
        try await World.with(proxy: Self.timeouts) { world in
            let connection = try await RawConnection.open(world.server.gateway)
            try await connection.send(text)
            let answer = try await connection.readToEnd()
            #expect(text.isEmpty ? answer.isEmpty || answer.contains(" 408 ") : MessageHead(answer).status == 408, "\(answer)")
            #expect(world.requests.isEmpty && world.api.notes.count == 2)
            try await #expect(world.server.operations().isEmpty)
        }
    }

    @Test func idleConnectionsAreClosed() async throws {
        try await World.with(proxy: ["timeouts": ["idle": "3s"]]) { world in
            let connection = try await RawConnection.open(world.server.gateway)
            try await connection.send("GET /v1/notes/1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            try await #expect(connection.response().head.status == 200)
            try await #expect(connection.readToEnd().isEmpty)
        }
    }

    @Test func anUpstreamThatSaysNothing() async throws {
        let upstream = try await RawServer.start { _ = try await $0.readToEnd(within: .seconds(60)) }
        let server = try await ServerProcess.start(ServerSettings(upstream: upstream.port, ["timeouts": ["first_byte": "1s"]]))
        let read = try await Curl.send("GET", "http://\(server.gateway)/v1/notes/1")
        #expect(read.status == 504 && read["proxy-status"]?.contains("timeout") == true, "\(read.status) \(read["proxy-status"] ?? "")")
        let write = try await Curl.send("PUT", "http://\(server.gateway)/v1/notes/1", body: "{}")
        #expect(write.status == 202, "\(write.status) \(write.text)")
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await upstream.stop()
    }

    @Test(arguments: ["Content-Length: 1000", "Transfer-Encoding: chunked"]) func aBrokenAnswerIsNeverTakenForAWhole(
        _ framing: String
    ) async throws {
        let upstream = try await RawServer.start { connection in
            _ = try await connection.read(through: "\r\n\r\n")
            try await connection.send(
                "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nCache-Control: max-age=600\r\n\(framing)\r\n\r\n5\r\nfirst\r\n")
        }
        let server = try await ServerProcess.start(ServerSettings(upstream: upstream.port))
        for _ in 0..<2 {
            let reply = try await Curl.send("GET", "http://\(server.gateway)/broken")
            #expect(reply.exit != 0 || reply.status >= 500, "\(reply.status)")
            #expect(reply["cache-status"]?.contains("hit") != true)
        }
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await upstream.stop()
    }
}
