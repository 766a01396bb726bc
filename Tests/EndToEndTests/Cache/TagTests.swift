// Tags as groups, purges by them, by pattern and by age, and the methods PURGE and BAN (docs/reference/behaviour.md#purge).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite struct TagTests {
    /// An upstream whose responses have the tags of their path: `/a/b` has `a` and `b`.
    private static func api() async throws -> RawServer {
        try await RawServer.start { connection in
            while true {
                let head = try await connection.read(through: "\r\n\r\n", within: .seconds(60))
                let path = head.split(separator: " ").dropFirst().first ?? "/"
                let words = path.split(separator: "/").map(String.init)
                let fields = [
                    "HTTP/1.1 200 OK", "Content-Length: 2", "Cache-Control: max-age=600", "Surrogate-Key: \(words.first ?? "x") all",
                    "Cache-Tag: \(words.last ?? "x"), list", "xkey: k",
                ]
                try await connection.send(fields.joined(separator: "\r\n") + "\r\n\r\nok")
            }
        }
    }

    private static let paths = ["/a/1", "/a/2", "/b/1", "/b/2?x=1"]

    private func with(_ members: JSONValue = [:], _ body: (ServerProcess, String) async throws -> Void) async throws {
        let api = try await Self.api()
        let server = try await ServerProcess.start(ServerSettings(upstream: api.port, members))
        try await body(server, "http://127.0.0.1:\(api.port)")
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await api.stop()
    }

    private func fill(_ server: ServerProcess) async throws {
        for path in Self.paths { try await #expect(Curl.send("GET", "http://\(server.gateway)\(path)").status == 200) }
    }

    @Test(arguments: ["hide", "show"]) func clientsSeeTagsIfTheyShould(tags: String) async throws {
        try await with(["tags": .string(tags)]) { server, _ in
            for _ in 1...4 {
                let reply = try await Curl.send("GET", "http://\(server.gateway)/a/1")
                for name in ["surrogate-key", "cache-tag", "xkey"] { #expect((reply[name] != nil) == (tags == "show"), "\(reply.heads)") }
            }
        }
    }

    @Test func purgesSelectByTagPatternAndAge() async throws {
        try await with { server, origin in
            let purge = { (arguments: [String]) in
                try await self.fill(server)
                let run = try await server.command(["cache", "purge", "--format", "json"] + arguments)
                return try JSONValue.parse(Array(run.output.utf8))["entries"]?.integer
            }
            for (arguments, count) in [
                (["--group", "a"], 2), (["--group", "1"], 2), (["--group", "k"], 4), (["--group", "list", "--group", "none"], 4),
                (["--group", "a", "--group", "b", "--upstream", "notes"], 4), (["--group", "a", "--prefix", origin + "/a/2"], 1),
                (["--glob", origin + "/*/1"], 2), (["--glob", origin + "/b/2?x=*"], 1), (["--glob", origin + "/[ab]/1"], 0),
                (["--older-than", "1d"], 0), (["--older-than", "0s"], 4), (["--older-than", "0s", "--group", "b"], 2),
                ([origin + "/a/1", "--group", "b"], 0), ([origin + "/a/1", "--group", "a"], 1),
            ] { try await #expect(purge(arguments) == Int64(count), "\(arguments)") }
        }
    }

    @Test func methodsNeedTheToken() async throws {
        try await with { server, origin in
            let token = "Authorization: Bearer \(try Files.text(of: server.stateDirectory + "/admin-token").filter { !$0.isWhitespace })"
            let base = "http://\(server.gateway)"
            for (method, path, fields, count) in [
                ("PURGE", "/a/1", [], 1), ("PURGE", "/none", [], 0), ("PURGE", "/", ["Surrogate-Key: a"], 2),
                ("PURGE", "/", ["xkey: 1, none"], 2),
                ("PURGE", "/", ["Cache-Tag: list"], 4), ("PURGE", "/b/*", [], 2), ("BAN", "/b/*", [], 2), ("PURGE", "/*", [], 4),
            ] as [(String, String, [String], Int64)] {
                try await fill(server)
                let options = method == "BAN" ? ["--http2-prior-knowledge"] : []
                for wrong in [[], ["Authorization: Bearer \(String(repeating: "0", count: 43))"]] {
                    try await expectProblem(Curl.send(method, base + path, fields: fields + wrong, options: options), "unauthorized", 401)
                }
                let reply = try await Curl.send(method, base + path, fields: fields + [token], options: options)
                #expect(reply.status == 200 && reply.json?["entries"]?.integer == count, "\(method) \(path) \(reply.text)")
            }
            try await fill(server)
            let proxied = try await Curl.send("PURGE", origin + "/a/1", proxy: server.proxy, fields: [token])
            #expect(proxied.json?["entries"] == 1)
        }
    }
}
