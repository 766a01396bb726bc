// One gateway listener for several upstreams, by name and by path; a gateway with TLS; HTTP/2 at gateways (docs/guide/clients.md#gateways).
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite struct SharedGatewayTests {
    /// An upstream that says its name and repeats the request's target and fields.
    private static func echo(_ name: String) async throws -> RawServer {
        try await RawServer.start { connection in
            while true {
                let head = try await connection.read(through: "\r\n\r\n", within: .seconds(60))
                let target = head.split(separator: " ").dropFirst().first ?? ""
                let body = "\(name) \(target)\n\(head)"
                let fields = [
                    "HTTP/1.1 200 OK", "Content-Length: \(body.utf8.count)", "Location: /v1/\(name)", "Link: </next>; rel=next",
                    "Set-Cookie: a=b; Path=/v1", "Cache-Control: no-store",
                ]
                try await connection.send(fields.joined(separator: "\r\n") + "\r\n\r\n" + body)
            }
        }
    }

    private static func settings(_ upstreams: [(name: String, port: Int, gateway: JSONValue)]) -> ServerSettings {
        var settings = ServerSettings()
        settings.others = upstreams.map { ServerSettings.declaration($0.name, port: $0.port).merging(["gateway": $0.gateway]) }
        return settings
    }

    /// Two APIs of one origin: each has its switch, whichever way a request comes.
    @Test func pathsOfOneOriginAreUpstreams() async throws {
        let origin = try await Self.echo("api")
        let base = "http://127.0.0.1:\(origin.port)"
        let gateways = [1, 2].map { _ in "127.0.0.1:\(FreePort.next())" }
        var settings = ServerSettings()
        settings.others = [1, 2].map { number in
            ["name": .string("v\(number)"), "origin": .string("\(base)/api/v\(number)"), "gateway": .string(gateways[number - 1])]
        }
        let server = try await ServerProcess.start(settings)
        for number in [1, 2] {
            let own = try await Curl.send("GET", "http://\(gateways[number - 1])/notes")
            #expect(own.status == 200 && own.text.hasPrefix("api /api/v\(number)/notes\n"), "\(own.text)")
            let whole = try await Curl.send("GET", "\(base)/api/v\(number)/notes", proxy: server.proxy)
            #expect(whole.status == 200 && whole.text.hasPrefix("api /api/v\(number)/notes\n"), "\(whole.text)")
            try await eventually("both are recorded") {
                try await server.get("/v1/requests?upstream=v\(number)").json?["items"]?.array?.count == 2
            }
        }
        let off = try await server.change("PUT", "/v1/network", ["mode": "offline", "upstream": "v2"])
        #expect(off.status == 200, "\(off.text)")
        try await #expect(Curl.send("GET", "http://\(gateways[0])/other").status == 200)
        try await #expect(Curl.send("GET", "http://\(gateways[1])/other").status == 504)
        try await #expect(Curl.send("GET", "\(base)/api/v2/other", proxy: server.proxy).status == 504)
        try await #expect(Curl.send("GET", "\(base)/other", proxy: server.proxy).status == 200)
        try await server.stop()
    }

    @Test func namesSelectTheUpstream() async throws {
        let (notes, files) = (try await Self.echo("notes"), try await Self.echo("files"))
        let listen = "127.0.0.1:\(FreePort.next())"
        let server = try await ServerProcess.start(
            Self.settings([
                ("notes", notes.port, ["listen": .string(listen), "host": "notes.localhost"]),
                ("files", files.port, ["listen": .string(listen), "host": "files.localhost"]),
            ]))
        let port = try #require(HostAndPort(listen)).port
        for name in ["notes", "files"] {
            let base = "http://\(name).localhost:\(port)"
            let reply = try await Curl.send("GET", base + "/v1/x", options: ["--resolve", "\(name).localhost:\(port):127.0.0.1"])
            #expect(reply.status == 200 && reply.text.hasPrefix("\(name) /v1/x\n") && reply["location"] == "/v1/\(name)", "\(reply.text)")
        }
        let unnamed = try await Curl.send("GET", "http://\(listen)/v1/x")
        expectProblem(unnamed, "misdirected", 421)
        try await #expect(server.stop() == .exit(0))
        for api in [notes, files] { await api.stop() }
    }

    @Test func pathsSelectTheUpstreamAndStayInTheAnswers() async throws {
        let (notes, files) = (try await Self.echo("notes"), try await Self.echo("files"))
        let listen = "127.0.0.1:\(FreePort.next())"
        let server = try await ServerProcess.start(
            Self.settings([
                ("notes", notes.port, ["listen": .string(listen), "path": "/notes"]),
                ("files", files.port, ["listen": .string(listen), "path": "/notes/files"]),
            ]))
        let base = "http://\(listen)"
        let note = try await Curl.send("GET", base + "/notes/v1/x?y=1", fields: ["Referer: \(base)/notes/a", "Origin: \(base)"])
        #expect(note.text.hasPrefix("notes /v1/x?y=1\n") && note["location"] == "/notes/v1/notes", "\(note.text)")
        #expect(note.text.contains("\r\nReferer: http://127.0.0.1:\(notes.port)/a\r\n"), "\(note.text)")
        #expect(note.text.contains("\r\nOrigin: http://127.0.0.1:\(notes.port)\r\n"), "\(note.text)")
        #expect(note["link"] == "</notes/next>; rel=next" && note["set-cookie"] == "a=b; Path=/notes/v1")
        let file = try await Curl.send("GET", base + "/notes/files")
        #expect(file.text.hasPrefix("files /\n") && file["location"] == "/notes/files/v1/files", "\(file.text)")
        try await expectProblem(Curl.send("GET", base + "/other"), "not-found", 404)
        // A write that waits names its document below the prefix.
        for api in [notes, files] { await api.stop() }
        let queued = try await Curl.send("PUT", base + "/notes/v1/x", fields: ["Content-Type: application/json"], body: "{}")
        let place = try #require(queued["location"])
        #expect(queued.status == 202 && place.hasPrefix("/notes/.well-known/rockpool/operations/"), "\(queued.heads)")
        try await #expect(Curl.send("GET", base + place).json?["state"]?.string != nil)
        try await #expect(server.stop() == .exit(0))
    }

    @Test func theOriginsPathStandsBeforeThoseOfTheClients() async throws {
        let notes = try await Self.echo("notes")
        let gateway = "127.0.0.1:\(FreePort.next())"
        var settings = ServerSettings()
        settings.others = [
            ["name": "notes", "origin": .string("http://127.0.0.1:\(notes.port)/v1"), "gateway": .string(gateway)]
        ]
        let server = try await ServerProcess.start(settings)
        let base = "http://\(gateway)"
        let reply = try await Curl.send("GET", base + "/x?y=1", fields: ["Referer: \(base)/a", "Origin: \(base)"])
        #expect(reply.text.hasPrefix("notes /v1/x?y=1\n") && reply["location"] == "/notes", "\(reply.text) \(reply.heads)")
        #expect(reply.text.contains("\r\nReferer: http://127.0.0.1:\(notes.port)/v1/a\r\n"), "\(reply.text)")
        #expect(reply["link"] == "<http://127.0.0.1:\(notes.port)/next>; rel=next", "\(reply.heads)")
        #expect(reply["set-cookie"] == "a=b; Path=/", "\(reply.heads)")
        // The proxy is used with whole URLs.
        let whole = try await Curl.send("GET", "http://127.0.0.1:\(notes.port)/v1/x", proxy: server.proxy)
        #expect(whole.text.hasPrefix("notes /v1/x\n") && whole["location"] == "/v1/notes", "\(whole.text)")
        // A write that waits: its document is at the gateway.
        await notes.stop()
        let queued = try await Curl.send("PUT", base + "/x", fields: ["Content-Type: application/json"], body: "{}")
        let place = try #require(queued["location"])
        #expect(queued.status == 202 && place.hasPrefix("/.well-known/rockpool/operations/"), "\(queued.heads)")
        let state = try await Curl.send("GET", base + place).json
        #expect(state?["url"]?.string == "http://127.0.0.1:\(notes.port)/v1/x", "\(state ?? .null)")
        try await #expect(server.stop() == .exit(0))
    }

    @Test(arguments: ["--http2", "--http1.1"]) func aGatewaySpeaksTLS(version: String) async throws {
        let api = try await NotesServer.start(seed: [["title": "first"]])
        let listen = "127.0.0.1:\(FreePort.next())"
        let server = try await ServerProcess.start(
            Self.settings([("notes", api.port, ["listen": .string(listen), "tls": "auto", "host": "notes.localhost"])]))
        let port = try #require(HostAndPort(listen)).port
        for base in ["https://notes.localhost:\(port)", "https://\(listen)", "https://localhost:\(port)"] {
            let reply = try await Curl.send(
                "GET", base + "/v1/notes/1",
                options: [
                    version, "--cacert", server.stateDirectory + "/ca/ca.pem", "--resolve", "notes.localhost:\(port):127.0.0.1",
                    "--resolve", "localhost:\(port):127.0.0.1",
                ])
            #expect(reply.status == 200 && reply.json?["title"] == "first", "\(base) \(reply.exit)")
            #expect(reply.heads.last?.version == (version == "--http2" ? "HTTP/2" : "HTTP/1.1"))
        }
        // No certificate is issued for a name that the configuration does not contain, and nothing is answered without TLS.
        let foreign = try await Curl.send(
            "GET", "https://evil.test:\(port)/",
            options: ["--cacert", server.stateDirectory + "/ca/ca.pem", "--resolve", "evil.test:\(port):127.0.0.1"])
        #expect(foreign.exit == 60, "\(foreign.exit)")
        try await #expect(Curl.send("GET", "http://\(listen)/").exit != 0)
        try await #expect(server.stop() == .exit(0))
        await api.stop()
    }

    /// RFC 8446 §2.2, RFC 5077: a client that comes again needs no new handshake.
    @Test(arguments: ["-tls1_2", "-tls1_3"]) func aSessionIsResumed(version: String) async throws {
        let api = try await NotesServer.start(seed: [["title": "first"]])
        let listen = "127.0.0.1:\(FreePort.next())"
        let server = try await ServerProcess.start(Self.settings([("notes", api.port, ["listen": .string(listen), "tls": "auto"])]))
        let scratch = try Scratch()
        for (option, word) in [("-sess_out", "New"), ("-sess_in", "Reused")] {
            let request = "GET /v1/notes/1 HTTP/1.1\\r\\nHost: \(listen)\\r\\nConnection: close\\r\\n\\r\\n"
            let run = try await Command.run(
                "/bin/sh",
                [
                    "-c",
                    "(printf '\(request)'; sleep 1) | openssl s_client -connect \(listen) \(version) \(option) \(scratch.path)/session -ign_eof",
                ])
            #expect(run.output.contains("\n\(word), TLS") && run.output.contains("HTTP/1.1 200"), "\(run.output.suffix(500))")
        }
        try await #expect(server.stop() == .exit(0))
        await api.stop()
    }

    @Test func aGatewaySpeaksHTTP2ByPriorKnowledge() async throws {
        try await World.with { world in
            for method in ["GET", "GET", "POST"] {
                let reply = try await world.send(
                    method, method == "GET" ? "/v1/notes/1" : "/v1/notes", fields: ["Content-Type: application/json"],
                    body: method == "GET" ? nil : #"{"title":"third"}"#,
                    options: ["--http2-prior-knowledge"])
                #expect(reply.status == (method == "GET" ? 200 : 201) && reply.heads.last?.version == "HTTP/2", "\(reply.heads)")
            }
            // The words of the preface are not a request of HTTP/1.
            let client = try await RawConnection.open(world.server.gateway)
            try await client.send("PR")
            try await client.send("OPFIND /v1/notes HTTP/1.1\r\nHost: \(world.server.gateway)\r\nConnection: close\r\n\r\n")
            let (head, _) = try await client.response()
            #expect(head.status != 0 && head.status != 400, "\(head)")
        }
    }

    @Test func upstreamsThatCannotBeToldApartAreRefused() async throws {
        let port = FreePort.next()
        let listen: JSONValue = .string("127.0.0.1:\(port)")
        for (first, second, reason): (JSONValue, JSONValue, String) in [
            (["listen": listen], ["listen": listen], "host or path"),
            (["listen": listen, "path": "/a"], ["listen": listen, "path": "/a"], "same host and path"),
            (["listen": listen, "path": "/a"], ["listen": listen, "path": "/b", "tls": "auto"], "tls"),
        ] {
            let server = try ServerProcess.prepare(Self.settings([("notes", 1, first), ("files", 2, second)]))
            let checked = try await server.command("config", "check")
            #expect(checked.status == 78 && (checked.errors + checked.output).contains(reason), "\(checked)")
        }
    }
}
