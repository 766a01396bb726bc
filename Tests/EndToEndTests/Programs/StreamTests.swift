// Streams of events are not cut for their silence, routes set limits of their own, and what is cut is broken off, never ended cleanly.
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(1))) struct StreamTests {
    /// A server that sends the head at once or late, one chunk, and after two seconds of silence another one and the end.
    private func with(_ upstream: JSONValue, type: String, late: Bool = false, _ body: (ServerProcess) async throws -> Void) async throws {
        let origin = try await RawServer.start { connection in
            while true {
                let request = try await connection.read(through: "\r\n\r\n", within: .seconds(30))
                guard !request.hasPrefix("HEAD") else {
                    try await connection.send(Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".utf8))
                    continue
                }
                if late { try await Task.sleep(for: .seconds(2)) }
                let head = "HTTP/1.1 200 OK\r\nContent-Type: \(type)\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n"
                try await connection.send(Array(head.utf8))
                if !late { try await Task.sleep(for: .seconds(2)) }
                try await connection.send(Array("4\r\nlast\r\n0\r\n\r\n".utf8))
            }
        }
        let limits: JSONValue = ["timeouts": ["connect": "1s", "first_byte": "1s", "idle": "1s"]]
        let server = try await ServerProcess.start(ServerSettings(upstream: origin.port, limits.merging(upstream)))
        try await body(server)
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await origin.stop()
    }

    @Test func eventsHaveNoLimitOfSilence() async throws {
        try await with([:], type: "text/event-stream") { server in
            let reply = try await Curl.send("GET", "http://\(server.gateway)/events")
            #expect(reply.exit == 0 && reply.text == "firstlast")
        }
    }

    /// curl's exit status 18: the transfer ended before its end.
    @Test func anotherResponseIsBrokenOff() async throws {
        try await with([:], type: "text/plain") { server in
            let reply = try await Curl.send("GET", "http://\(server.gateway)/slow")
            #expect(reply.exit == 18 && reply.text == "first", "\(reply.exit) \(reply.text)")
        }
    }

    @Test func aRouteHasLimitsOfItsOwn() async throws {
        let routes: JSONValue = ["routes": [["match": "/poll", "timeouts": ["first_byte": "10s"]]]]
        try await with(routes, type: "text/plain", late: true) { server in
            try await #expect(Curl.send("GET", "http://\(server.gateway)/poll").text == "firstlast")
            try await #expect(Curl.send("GET", "http://\(server.gateway)/other").status == 504)
        }
    }
}
