// Each kind of parent proxy, for decrypted requests (libcurl), for tunnels (Rockpool's own code) and for plain HTTP.
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(3)), .serialized) struct ParentProxyTests {
    /// The scheme of `via`, the kind of the parent, and the expected method for a host that only the parent can resolve.
    static let ways = [("http", "http", "CONNECT"), ("socks5h", "socks", "SOCKS")]

    private func get(_ url: String, through server: ServerProcess, trusting authority: String) async throws -> Curl {
        try await Curl.send(
            "GET", url, options: ["--proxy", "http://" + server.proxy, "--cacert", authority, "--suppress-connect-headers"])
    }

    private func serve(
        _ site: SecureSite, host: String, via: String, isDecrypted: Bool, _ authority: TestAuthority
    ) async throws -> ServerProcess {
        try await .start(
            ServerSettings(
                upstream: site.port,
                [
                    "origin": .string("https://\(host):\(site.port)"), "intercept": .bool(isDecrypted), "via": .string(via),
                    "tls": ["ca_file": .string(authority.file)],
                ]))
    }

    @Test(arguments: ways, [true, false])
    func theParentResolvesTheName(way: (scheme: String, kind: String, verb: String), isDecrypted: Bool) async throws {
        let authority = try await TestAuthority()
        let site = try await SecureSite(certificate: authority.certificate("DNS:pool.test"))
        let parent = try await ParentProcess(way.kind)
        let server = try await serve(
            site, host: "pool.test", via: "\(way.scheme)://127.0.0.1:\(parent.port)", isDecrypted: isDecrypted, authority)
        let trust = isDecrypted ? server.stateDirectory + "/ca/ca.pem" : authority.file
        let reply = try await get("https://pool.test:\(site.port)/tide.json", through: server, trusting: trust)
        #expect(reply.status == 200 && reply.text.contains("low"), "\(reply.exit) \(reply.text) \(parent.lines)")
        #expect(parent.lines == ["\(way.verb) pool.test:\(site.port)"])
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        try await site.stop()
    }

    @Test(arguments: ways, [(true, "secret"), (false, "secret"), (true, "wrong"), (false, "wrong")])
    func aParentMayWantAPassword(
        way: (scheme: String, kind: String, verb: String), wanted: (isDecrypted: Bool, password: String)
    ) async throws {
        let authority = try await TestAuthority()
        let site = try await SecureSite(certificate: authority.certificate("DNS:pool.test"))
        let parent = try await ParentProcess(way.kind, password: "ann:secret")
        let file = try authority.scratch.write("\(wanted.password)\n", to: "password")
        _ = chmod(file, 0o600)
        let server = try await ServerProcess.start(
            ServerSettings(
                upstream: site.port,
                [
                    "origin": .string("https://pool.test:\(site.port)"), "intercept": .bool(wanted.isDecrypted),
                    "via": [
                        "url": .string("\(way.scheme)://127.0.0.1:\(parent.port)"), "auth": "basic", "user": "ann",
                        "password_file": .string(file),
                    ],
                    "tls": ["ca_file": .string(authority.file)],
                ]))
        let trust = wanted.isDecrypted ? server.stateDirectory + "/ca/ca.pem" : authority.file
        let reply = try await get("https://pool.test:\(site.port)/tide.json", through: server, trusting: trust)
        #expect((reply.status == 200) == (wanted.password == "secret"), "\(reply.exit) \(reply.text) \(parent.lines)")
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        try await site.stop()
    }

    /// Only with `socks5` the proxy itself resolves the name.
    @Test(arguments: [true, false]) func socks5IsGivenAnAddress(isDecrypted: Bool) async throws {
        let authority = try await TestAuthority()
        let site = try await SecureSite(certificate: authority.certificate())
        let parent = try await ParentProcess("socks")
        let server = try await serve(
            site, host: "localhost", via: "socks5://127.0.0.1:\(parent.port)", isDecrypted: isDecrypted, authority)
        let trust = isDecrypted ? server.stateDirectory + "/ca/ca.pem" : authority.file
        let reply = try await get(site.url + "/tide.json", through: server, trusting: trust)
        #expect(reply.status == 200 && reply.text.contains("low"), "\(reply.exit) \(reply.text)")
        #expect(parent.lines == ["SOCKS 127.0.0.1:\(site.port)"])
        try await server.stop()
        try await site.stop()
    }

    @Test(arguments: [("http", "http"), ("socks5h", "socks")]) func plainHTTPGoesThroughItToo(scheme: String, kind: String) async throws {
        let origin = try await RawServer.start { connection in
            let head = try await connection.read(through: "\r\n\r\n")
            let body = head.hasPrefix("GET /tide?x=1 HTTP/1.1\r\n") && head.contains("\r\nHost: pool.test:") ? "low" : head
            try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\nConnection: close\r\n\r\n\(body)")
        }
        let parent = try await ParentProcess(kind)
        let url = "http://pool.test:\(origin.port)"
        let server = try await ServerProcess.start(
            ServerSettings(upstream: origin.port, ["origin": .string(url), "via": .string("\(scheme)://127.0.0.1:\(parent.port)")]))
        let reply = try await Curl.send("GET", url + "/tide?x=1", proxy: server.proxy)
        #expect(reply.status == 200 && reply.text == "low", "\(reply.text) \(parent.lines)")
        #expect(parent.lines == [kind == "http" ? "GET \(url)/tide?x=1" : "SOCKS pool.test:\(origin.port)"])
        try await server.stop()
    }

    /// The parent's own TLS certificate is verified like any other, with the system's trust store.
    @Test(arguments: [true, false]) func aParentThatNobodyVouchesForIsRefused(isDecrypted: Bool) async throws {
        let authority = try await TestAuthority()
        let site = try await SecureSite(certificate: authority.certificate("DNS:pool.test"))
        let parent = try await ParentProcess("http", certificate: authority.certificate())
        let server = try await serve(
            site, host: "pool.test", via: "https://localhost:\(parent.port)", isDecrypted: isDecrypted, authority)
        let url = "https://pool.test:\(site.port)/tide.json"
        if isDecrypted {
            let reply = try await get(url, through: server, trusting: server.stateDirectory + "/ca/ca.pem")
            expectProblem(reply, "upstream-error", 502)
            #expect(reply["proxy-status"]?.contains("error=tls_certificate_error") == true, "\(reply["proxy-status"] ?? "")")
        } else {
            let client = try await RawConnection.open(server.proxy)
            try await client.send("CONNECT pool.test:\(site.port) HTTP/1.1\r\nHost: pool.test:\(site.port)\r\n\r\n")
            let (head, _) = try await client.response()
            #expect(head.status == 502 && head["proxy-status"]?.contains("error=tls_certificate_error") == true, "\(head)")
        }
        #expect(parent.lines.allSatisfy { $0.hasPrefix("failed") })
        try await server.stop()
        try await site.stop()
    }

    /// Rules like those of a PAC file, for hosts that are declared and for others, for requests and tunnels.
    @Test func rulesChooseTheParent() async throws {
        let authority = try await TestAuthority()
        let site = try await SecureSite(certificate: authority.certificate("DNS:pool.test,DNS:localhost"))
        let origin = try await RawServer.start { connection in
            _ = try await connection.read(through: "\r\n\r\n")
            try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nlow")
        }
        let parent = try await ParentProcess("http", password: "ann:secret")
        let file = try authority.scratch.write("secret\n", to: "password")
        _ = chmod(file, 0o600)
        var settings = ServerSettings(
            upstream: origin.port, ["origin": .string("http://declared.test:\(origin.port)")],
            proxy: ["connect_ports": [.number(JSONNumber(Int64(site.port)))]])
        settings.via = [
            ["hosts": ["direct.test", "192.0.2.0/24"], "url": "direct"],
            [
                "hosts": ["*"], "url": .string("http://127.0.0.1:\(parent.port)"), "auth": "basic", "user": "ann",
                "password_file": .string(file),
            ],
        ]
        let server = try await ServerProcess.start(settings)
        for host in ["declared.test", "other.test"] {
            let reply = try await Curl.send("GET", "http://\(host):\(origin.port)/\(host)", proxy: server.proxy)
            #expect(reply.status == 200 && reply.text == "low", "\(reply.text) \(parent.lines)")
        }
        let tunnel = try await get("https://pool.test:\(site.port)/tide.json", through: server, trusting: authority.file)
        #expect(tunnel.status == 200 && tunnel.text.contains("low"), "\(tunnel.exit) \(parent.lines)")
        let expected = [
            "GET http://declared.test:\(origin.port)/declared.test", "GET http://other.test:\(origin.port)/other.test",
            "CONNECT pool.test:\(site.port)",
        ]
        #expect(parent.lines == expected)
        // This machine is never behind `*`, and what may not be reached is not passed to the parent either.
        try await #expect(Curl.send("GET", "http://127.0.0.1:\(origin.port)/", proxy: server.proxy).status == 200)
        try await #expect(Curl.send("GET", "http://direct.test:\(origin.port)/", proxy: server.proxy).status >= 500)
        for target in ["169.254.169.254", "0.0.0.0"] {
            try await #expect(Curl.send("GET", "http://\(target):\(origin.port)/", proxy: server.proxy).status == 403)
        }
        #expect(parent.lines == expected)
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        try await site.stop()
    }

    /// Of several parents the first that answers is taken, for requests and tunnels; one that was away is taken again after a probe.
    @Test func anotherParentStandsInForOneThatIsAway() async throws {
        let authority = try await TestAuthority()
        let site = try await SecureSite(certificate: authority.certificate("DNS:pool.test"))
        let origin = try await RawServer.start { connection in
            _ = try await connection.read(through: "\r\n\r\n")
            try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\nCache-Control: no-store\r\n\r\nlow")
        }
        let (place, second) = (FreePort.next(), try await ParentProcess("http"))
        var settings = ServerSettings()
        settings.proxy = ["connect_ports": [.number(JSONNumber(Int64(site.port)))]]
        settings.via = [
            [
                "hosts": ["*"], "url": .string("http://127.0.0.1:\(place)"),
                "others": [["url": .string("http://127.0.0.1:\(second.port)")]],
            ]
        ]
        let server = try await ServerProcess.start(settings)
        let url = "http://other.test:\(origin.port)/a"
        for _ in 0..<2 { try await #expect(Curl.send("GET", url, proxy: server.proxy).text == "low", "\(second.lines)") }
        let tunnel = try await get("https://pool.test:\(site.port)/tide.json", through: server, trusting: authority.file)
        #expect(tunnel.status == 200, "\(tunnel.exit) \(second.lines)")
        #expect(second.lines == ["GET \(url)", "GET \(url)", "CONNECT pool.test:\(site.port)"])
        #expect(server.errors.contains("a parent proxy does not answer"), "\(server.errors)")

        let shown = { try await server.get("/v1/status").json?["parents"]?.array ?? [] }
        let parents = try await shown()
        #expect(parents.map { $0["state"] } == ["down", "up"] && parents.map { $0["used"] } == [false, true], "\(parents)")
        #expect(parents.first?["of"] == "*" && parents.first?["since"]?.string != nil, "\(parents)")

        let first = try await ParentProcess("http", port: place)
        try await eventually("the first one is taken again", within: .seconds(40)) {
            try await #expect(Curl.send("GET", url, proxy: server.proxy).text == "low")
            return first.lines.contains("GET \(url)")
        }
        try await #expect(shown().map { $0["used"] } == [true, false])
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        try await site.stop()
    }

    @Test func severalParentsTakeTurnsByWeight() async throws {
        let origin = try await RawServer.start { connection in
            _ = try await connection.read(through: "\r\n\r\n")
            try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\nCache-Control: no-store\r\n\r\nlow")
        }
        let (first, second) = (try await ParentProcess("http"), try await ParentProcess("http"))
        let url = "http://pool.test:\(origin.port)"
        let via: JSONValue = [
            "url": .string("http://127.0.0.1:\(first.port)"), "weight": 2, "choose": "weight",
            "others": [["url": .string("http://127.0.0.1:\(second.port)")]],
        ]
        let server = try await ServerProcess.start(ServerSettings(upstream: origin.port, ["origin": .string(url), "via": via]))
        for number in 0..<6 { try await #expect(Curl.send("GET", "\(url)/\(number)", proxy: server.proxy).text == "low") }
        let counts = [first, second].map { parent in parent.lines.count { $0.hasPrefix("GET ") } }
        // A probe may have taken a turn between.
        #expect(counts[0] > counts[1] && counts[1] > 0 && counts[0] + counts[1] == 6, "\(first.lines) \(second.lines)")
        try await server.stop()
    }
}
