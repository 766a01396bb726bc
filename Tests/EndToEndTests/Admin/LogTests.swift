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

    /// What a start says is of the log's form as well, also where the start fails.
    @Test func aStartIsLinesOfJSON() async throws {
        var settings = ServerSettings(upstream: FreePort.next())
        settings.log = ["format": "json"]
        let server = try await ServerProcess.start(settings)
        try await eventually("the addresses") { server.errors.contains("gateway http") }
        let lines = server.errors.split(separator: "\n").map { try? JSONValue.parse(Array($0.utf8)) }
        #expect(lines.count >= 2 && lines.allSatisfy { $0?["at"] != nil && $0?["level"] != nil }, "\(server.errors)")
        #expect(lines.contains { $0?["message"]?.string?.hasPrefix("dashboard http://\(server.admin)/, configuration /") == true })
        let second = try await server.command("serve")
        let reason = try JSONValue.parse(Array(second.errors.utf8))
        #expect(second.status == 75 && reason["level"] == "error" && reason["message"]?.string?.hasPrefix("another Rockpool") == true)
        try await #expect(server.stop() == .exit(0))
        // A mistake beside the key that names the form.
        try Files.write(Array("log: { format: json }\nproxy: { lsten: x }\nadmin: { lsten: x }\n".utf8), to: server.configurationFile)
        let bad = try await server.command("serve")
        let mistakes = try bad.errors.split(separator: "\n").map { try JSONValue.parse(Array($0.utf8)) }
        #expect(bad.status == 78 && mistakes.count == 2 && mistakes.allSatisfy { $0["level"] == "error" }, "\(bad.errors)")
        #expect(mistakes.first?["message"]?.string?.contains(":2: unknown key \"lsten\"") == true, "\(bad.errors)")
    }

    /// Each answered request has a line of the access log: also one that is refused before it is an exchange, and one that becomes a tunnel.
    @Test func eachAnsweredRequestHasItsLine() async throws {
        let scratch = try Scratch()
        let passwords = scratch.path + "/passwords"
        try await #expect(Command.run(Binary.path, ["proxy-password", "ann", "--file", passwords], input: "sea\n").status == 0)
        let (origin, shared) = (try await RawServer.answering { _ in "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" }, FreePort.next())
        var settings = ServerSettings(
            upstream: origin.port,
            proxy: ["auth": ["file": .string(passwords)], "connect_ports": [.number(JSONNumber(Int64(origin.port)))]])
        settings.log = ["access": "json"]
        settings.others = ["one", "two"].map { name in
            [
                "name": .string(name), "origin": .string("http://127.0.0.1:\(FreePort.next())"),
                "gateway": ["listen": .string("127.0.0.1:\(shared)"), "path": .string("/" + name)],
            ]
        }
        let server = try await ServerProcess.start(settings)
        let right = ["--proxy-user", "ann:sea"], url = "http://127.0.0.1:\(origin.port)/a"
        try await #expect(Curl.send("GET", url, proxy: server.proxy).status == 407)
        try await #expect(Curl.send("GET", url, proxy: server.proxy, options: ["--proxy-user", "ann:wrong"]).status == 407)
        try await #expect(Curl.send("GET", url, proxy: server.proxy, options: right).status == 200)
        try await #expect(Curl.send("GET", "http://\(server.gateway)/b?token=hidden", fields: ["Host: evil.example"]).status == 421)
        try await #expect(Curl.send("GET", "http://127.0.0.1:\(shared)/three").status == 404)
        let tunnel = ["--proxytunnel", "--proxy", "http://" + server.proxy, "--suppress-connect-headers"]
        let refused = try await Curl.send("GET", "http://127.0.0.1:9/c", options: tunnel + right)
        #expect(refused.exit == 56, "\(refused)")
        try await #expect(Curl.send("GET", url, options: tunnel + right).status == 200)
        let malformed = try await RawConnection.open(server.gateway)
        try await malformed.send("GET / HTTP/1.1\r\nHost : x\r\n\r\n")
        try await #expect(malformed.readToEnd().hasPrefix("HTTP/1.1 400"))
        let wanted = [
            "GET \(url) 407 refused", "GET \(url) 407 refused", "GET \(url) 200 pass",
            "GET http://evil.example/b?token=REDACTED 421 refused",
            "GET http://127.0.0.1:\(shared)/three 404 refused", "CONNECT 127.0.0.1:9 403 refused",
            "CONNECT 127.0.0.1:\(origin.port) 200 tunnel",
            "GET \(url) 200 pass", "- - 400 refused",
        ]
        func lines() throws -> [String] {
            try server.output.split(separator: "\n").dropFirst().map { text in
                let line = try JSONValue.parse(Array(text.utf8))
                #expect(RFC3339.parse(line["at"]?.string ?? "") != nil && line["seconds"]?.number != nil && line["bytes"]?.integer != nil)
                let words = ["method", "url", "verdict"].map { line[$0]?.string ?? "" }
                return "\(words[0]) \(words[1]) \(line["status"]?.integer ?? 0) \(words[2])"
            }
        }
        try await eventually("all lines") { try lines().count >= wanted.count }
        #expect(try lines().map { $0.replacing(" miss", with: " pass") } == wanted, "\(server.output)")
        #expect(!server.output.contains("hidden") && !server.output.contains("sea"))
        try await #expect(server.stop() == .exit(0))
        await origin.stop()
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
