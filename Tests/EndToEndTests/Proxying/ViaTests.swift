// `send_via`, `on_miss`, and the bytes of each upstream (docs/reference/behaviour.md#via).
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite struct ViaTests {
    /// An upstream that compresses as nginx does by default: not for requests with `Via`. Its body says which of them it has seen.
    private static func nginx() async throws -> RawServer {
        try await RawServer.start { connection in
            while true {
                let head = try await connection.read(through: "\r\n\r\n", within: .seconds(60)).lowercased()
                let hasVia = head.contains("\r\nvia: "), hasLoop = head.contains("\r\ncdn-loop: rockpool-")
                let body = String(repeating: "x", count: hasVia ? 4000 : 40)
                let fields = [
                    "HTTP/1.1 200 OK", "Content-Type: text/plain", "Content-Length: \(body.utf8.count)", "X-Seen: \(hasVia) \(hasLoop)",
                    "Cache-Control: no-store", hasVia ? "X-Plain: 1" : "Content-Encoding: gzip",
                ]
                try await connection.send(fields.joined(separator: "\r\n") + "\r\n\r\n" + body)
            }
        }
    }

    @Test(arguments: [
        ("auto", ["true true", "false true", "false true"]), ("always", ["true true", "true true"]),
        ("never", ["false true", "false true"]),
    ])
    func viaIsSentByTheRule(rule: String, seen: [String]) async throws {
        let api = try await Self.nginx()
        let server = try await ServerProcess.start(ServerSettings(upstream: api.port, ["send_via": .string(rule)]))
        for expected in seen {
            let reply = try await Curl.send("GET", "http://\(server.gateway)/a", fields: ["Accept-Encoding: gzip"])
            #expect(reply["x-seen"] == expected && reply["via"]?.contains("rockpool-") == true, "\(reply.heads)")
        }
        let stats = try await server.command("stats", "--format", "json")
        let upstream = try JSONValue.parse(Array(stats.output.utf8))["upstreams"]?.array?.first
        #expect(upstream?["via"]?.string == (rule == "always" ? "sent" : "withheld"), "\(stats)")
        try await #expect(server.stop() == .exit(0))
        await api.stop()
    }

    @Test func bytesAreCountedByUpstream() async throws {
        try await World.with { world in
            for _ in 1...5 { try await #expect(world.send("GET", "/v1/notes/1").status == 200) }
            let stats = try await world.server.command("stats", "--format", "json")
            let upstream = try #require(JSONValue.parse(Array(stats.output.utf8))["upstreams"]?.array?.first)
            let count = { (name: String) in upstream[name]?.integer ?? 0 }
            #expect(upstream["name"] == "notes" && count("requests") >= 1 && count("sentBytes") > 0 && count("receivedBytes") > 0)
            #expect(count("deliveredBytes") > 0 && count("savedBytes") < count("deliveredBytes"), "\(upstream)")
            #expect(count("savedBytes") + count("receivedBytes") > count("deliveredBytes"), "\(upstream)")
            try await #expect(world.server.command("stats").output.contains("SAVED"))
        }
    }

    /// A page's `EventSource` asks again after a broken connection only; other programs get the document.
    @Test func anEventSourceMayAskAgain() async throws {
        try await World.with { world in
            await world.goOffline()
            let accept = ["Accept: text/event-stream"]
            try await #expect(world.send("GET", "/v1/notes/2", fields: accept).status == 504)
            for field in ["Sec-Fetch-Mode: cors", "Referer: http://localhost/page", "Origin: http://localhost"] {
                let broken = try await world.send("GET", "/v1/notes/2", fields: accept + [field])
                #expect(broken.status == 0 && broken.exit == 52, "\(field): \(broken.exit) \(broken.heads)")
            }
        }
    }

    @Test(arguments: [[], ["--http2-prior-knowledge"]]) func aMissMayCloseTheConnection(options: [String]) async throws {
        try await World.with(upstream: ["on_miss": "close"]) { world in
            try await #expect(world.send("GET", "/v1/notes/1", options: options).status == 200)
            await world.goOffline()
            try await #expect(world.send("GET", "/v1/notes/1", options: options).status == 200)
            let miss = try await world.send("GET", "/v1/notes/2", options: options)
            #expect(miss.status == 0 && [52, 92, 56].contains(miss.exit), "\(miss.exit) \(miss.heads)")
            try await #expect(world.send("PATCH", "/v1/notes/1", body: "{}", options: options).status == 202)
        }
    }
}
