// Requests that are refused without contacting an upstream (docs/reference/behaviour.md#refusals; docs/security-model.md#request-gate).
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct RefusalTests {
    @Test(arguments: Door.allCases) func loopsAreFound(_ door: Door) async throws {
        try await World.with { world in
            let via = try #require(try await world.send("GET", "/v1/notes/1", via: door)["via"])
            let name = try #require(via.split(separator: " ").last)
            expectProblem(try await world.send("GET", "/v1/notes/1", via: door, fields: ["Via: 1.1 other, 1.1 \(name)"]), "loop", 508)
            expectProblem(try await world.send("GET", "/v1/notes/1", via: door, fields: ["CDN-Loop: \(name)"]), "loop", 508)
            let other = try await world.send("GET", "/v1/notes/1", via: door, fields: ["Via: 1.1 other"])
            #expect(other.status == 200 && world.requests.last?.fields[.via] == "1.1 other, 1.1 \(name)")
        }
    }

    @Test func ourOwnListenersAreNoTarget() async throws {
        try await World.with { world in
            for address in [world.server.proxy, world.server.admin, world.server.gateway] {
                let reply = try await Curl.send("GET", "http://\(address)/v1/status", proxy: world.server.proxy)
                #expect((400..<500).contains(reply.status), "\(address): \(reply.status)")
            }
        }
    }

    @Test func aGatewayKnowsItsNames() async throws {
        try await World.with { world in
            expectProblem(try await world.send("GET", "/v1/notes/1", fields: ["Host: evil.example"]), "misdirected", 421)
            for host in [world.server.gateway, "localhost", "127.0.0.1:\(world.api.port)"] {
                try await #expect(world.send("GET", "/v1/notes/1", fields: ["Host: \(host)"]).status == 200, "\(host)")
            }
            #expect(world.requests.count == 3)
        }
    }

    static let malformed = [
        "GET / HTTP/1.1\r\nHost : localhost\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Authorization\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\n folded: yes\r\n\r\n",
    ]

    @Test(arguments: malformed) func malformedRequestsEndTheConnection(_ text: String) async throws {
        try await World.with { world in
            let connection = try await RawConnection.open(world.server.gateway)
            try await connection.send(text + "GET /v1/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n")
            let answer = try await connection.readToEnd()
            #expect(answer.hasPrefix("HTTP/1.1 400"), "\(answer.prefix(200))")
            #expect(answer.firstRange(of: "HTTP/1.1", after: 8) == nil && world.requests.isEmpty)
        }
    }

    @Test func oversizedHeadsAreRefused() async throws {
        try await World.with { world in
            let field = "X-Long: " + String(repeating: "x", count: 100_000)
            let reply = try await world.send("GET", "/v1/notes/1", fields: [field])
            #expect(reply.status == 431 && world.requests.isEmpty)
            try await #expect(world.send("GET", "/v1/notes/1", fields: ["X-Long: " + field.prefix(1000)]).status == 200)
        }
    }

    @Test(arguments: [false, true]) func oversizedBodiesAreNotQueued(_ isChunked: Bool) async throws {
        try await World.with(upstream: ["queue": ["max_body": "64 KiB"]]) { world in
            await world.goOffline()
            let fields = isChunked ? ["Transfer-Encoding: chunked"] : []
            let (fitting, tooLong) = (String(repeating: "x", count: 60_000), String(repeating: "x", count: 70_000))
            try await #expect(world.send("POST", "/v1/notes", fields: fields, body: fitting).status == 202)
            expectProblem(try await world.send("POST", "/v1/notes", fields: fields, body: tooLong), "body-too-large", 413)
            try await #expect(world.server.operations().count == 1)
        }
    }
}

extension String {
    /// Returns the next range of `text` after the first `count` characters.
    fileprivate func firstRange(of text: String, after count: Int) -> Range<String.Index>? {
        dropFirst(count).firstRange(of: text)
    }
}
