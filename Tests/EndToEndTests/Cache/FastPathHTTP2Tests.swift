// Requests over HTTP/2 that repeat are answered before their stream has a channel, as on the full path, and by the identity of their client
// (docs/architecture.md#parts *memory tier*).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(3)), .serialized) struct FastPathHTTP2Tests {
    /// Sends one request on a connection of its own. Fields that change with time are reduced to their names.
    private func answer(_ server: ServerProcess, _ sent: FastPathTests.Sent, _ path: String) async throws -> [String] {
        let reply = try await Curl.send(
            sent.method, "http://\(server.gateway)\(path)", fields: sent.fields, options: ["--http2-prior-knowledge"])
        let head = try #require(reply.heads.last, "curl: \(reply.exit)")
        #expect(head.version == "HTTP/2")
        return ["\(head.status)", reply.text] + FastPathTests.steady(head)
    }

    @Test(arguments: FastPathTests.requests, ["/public", "/private"])
    func aRepeatedRequestGetsTheSameAnswer(_ sent: FastPathTests.Sent, _ path: String) async throws {
        try await FastPathTests.with { server, _ in
            let credential = sent.fields.filter { !$0.hasPrefix("If-") && !$0.hasPrefix("Range") }
            if path == "/private", credential.isEmpty || credential[0].hasPrefix("Accept") { return }
            _ = try await answer(server, ("GET", credential, 200), path)
            let full = try await answer(server, sent, path)
            if path == "/public" { #expect(full[0] == "\(sent.status)") }
            if sent.method == "HEAD" { _ = try await answer(server, ("GET", credential, 200), path) }
            try await eventually("a hot hit") {
                let before = try await FastPathTests.hotHits(server)
                try await #expect(answer(server, sent, path) == full)
                return try await FastPathTests.hotHits(server) > before
            }
        }
    }

    /// Private answers are never mixed up on one connection of many streams. Over TLS: curl 7.88 sends no second request after prior
    /// knowledge, to no server.
    @Test func noAnswerIsAnothersOnOneConnection() async throws {
        let listen = "127.0.0.1:\(FreePort.next())"
        var settings = ServerSettings()
        let declare: (Int) -> ServerSettings = { port in
            let gateway: JSONValue = ["gateway": ["listen": .string(listen), "tls": "auto"]]
            settings.others = [ServerSettings.declaration("notes", port: port).merging(gateway)]
            return settings
        }
        try await FastPathTests.with(declare) { server, _ in
            let scratch = try Scratch()
            let credentials = (1...8).flatMap { ["Authorization: Bearer \($0)", "Cookie: session=\($0)", "X-Api-Key: \($0)"] }
            var random = Chance(27)
            let order = try (0..<900).map { _ in try #require(credentials.randomElement(using: &random)) }
            let transfers = order.enumerated().map { number, credential in
                "url = \"https://\(listen)/private\"\nheader = \"\(credential)\"\noutput = \"\(scratch.path)/\(number)\"\n"
                    + "http2\ninsecure\n"
            }
            let file = try scratch.write(transfers.joined(separator: "next\n"), to: "transfers")
            let before = try await FastPathTests.hotHits(server)
            let run = try await Command.run(
                "/usr/bin/curl", ["-sS", "--parallel", "--parallel-max", "24", "--config", file], within: .seconds(60))
            #expect(run.status == 0, "\(run.errors)")
            for (number, credential) in order.enumerated() {
                let body = try Files.text(of: "\(scratch.path)/\(number)")
                #expect(body == credential.split(separator: ": ")[1], "\(number): \(credential)")
            }
            try await #expect(FastPathTests.hotHits(server) - before > 500)
        }
    }
}
