// The client's side of the wire, byte by byte: uploads, pipelining, interim responses, tunnels, upgrades (RFC 9112; RFC 9110 §7.8).
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct ConnectionTests {
    @Test(arguments: Door.allCases) func chunkedUploadsPass(_ door: Door) async throws {
        try await World.with { world in
            let fields = ["Transfer-Encoding: chunked", "Content-Type: application/json"]
            let reply = try await world.send("POST", "/v1/notes", via: door, fields: fields, body: #"{"title":"in pieces"}"#)
            #expect(reply.status == 201, "\(reply.text)")
            #expect(world.api.notes.last?.members["title"] == "in pieces")
        }
    }

    @Test func waitingBodiesAreAskedFor() async throws {
        try await World.with { world in
            let connection = try await RawConnection.open(world.server.gateway)
            try await connection.send(
                "POST /v1/notes HTTP/1.1\r\nHost: \(world.server.gateway)\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
                    + "Content-Length: 16\r\n\r\n")
            let interim = try await connection.read(through: "\r\n\r\n")
            #expect(interim.hasPrefix("HTTP/1.1 100"))
            #expect(world.api.log().allSatisfy { $0.method != .post })
            try await connection.send(#"{"title":"wait"}"#)
            try await #expect(connection.response().head.status == 201)
            await connection.close()
        }
    }

    @Test func pipelinedRequestsAreAnsweredInOrder() async throws {
        try await World.with { world in
            let connection = try await RawConnection.open(world.server.gateway)
            let targets = ["/v1/slow?ms=150", "/v1/assets/10", "/v1/notes/1", "/v1/assets/20"]
            try await connection.send(targets.map { "GET \($0) HTTP/1.1\r\nHost: localhost\r\n\r\n" }.joined())
            try await #expect(connection.response().body == #"{"waited":150}"#)
            try await #expect(connection.response().head["etag"] == "\"asset-10\"")
            try await #expect(connection.response().body.contains("first"))
            try await #expect(connection.response().head["etag"] == "\"asset-20\"")
            try await connection.send("GET /v1/assets/10 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            try await #expect(connection.readToEnd().hasPrefix("HTTP/1.1 200"))
        }
    }

    /// The bytes of a body are never taken for a head, whatever they are, while its request waits for its turn.
    @Test func theBodyOfAPipelinedRequestIsABody() async throws {
        try await World.with { world in
            let host = "Host: \(world.server.gateway)\r\n"
            let hidden = "\r\n0\r\n\r\nDELETE /v1/notes/1 HTTP/1.1\r\n\(host)\r\n"
            for body in [#"{"title":"éèü"}"#, String(repeating: "é", count: hidden.utf8.count) + hidden] {
                let connection = try await RawConnection.open(world.server.gateway)
                let size = String(body.utf8.count, radix: 16)
                try await connection.send(
                    "GET /v1/slow?ms=150 HTTP/1.1\r\n\(host)\r\nPOST /v1/notes HTTP/1.1\r\n\(host)Content-Type: application/json\r\n"
                        + "Transfer-Encoding: chunked\r\n\r\n\(size)\r\n\(body)\r\n0\r\n\r\n")
                try await #expect(connection.response().body == #"{"waited":150}"#)
                try await #expect([201, 400].contains(connection.response().head.status))
                await connection.close()
            }
            #expect(world.api.notes.last?.members["title"] == "éèü")
            #expect(world.api.log().allSatisfy { $0.method != .delete })
        }
    }

    @Test func interimResponsesArePassedOn() async throws {
        let upstream = try await RawServer.answering { _ in
            "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        }
        let server = try await ServerProcess.start(ServerSettings(upstream: upstream.port))
        let reply = try await Curl.send("GET", "http://\(server.gateway)/")
        #expect(reply.heads.map(\.status) == [103, 200] && reply.heads.first?["link"] == "</style.css>" && reply.text == "ok")
        try await #expect(server.stop() == .exit(0))
        await upstream.stop()
    }

    /// Echoes received bytes until the connection ends.
    static func echo(_ connection: RawConnection) async throws {
        while true { try await connection.send(try await connection.read(bytes: 1, within: .seconds(60))) }
    }

    @Test func tunnelsCarryBytesBothWays() async throws {
        let (allowed, forbidden) = (try await RawServer.start(Self.echo), try await RawServer.start(Self.echo))
        let server = try await ServerProcess.start(ServerSettings(upstream: allowed.port))
        let tunnel = try await RawConnection.open(server.proxy)
        try await tunnel.send("CONNECT 127.0.0.1:\(allowed.port) HTTP/1.1\r\nHost: 127.0.0.1:\(allowed.port)\r\n\r\n")
        let head = try await tunnel.read(through: "\r\n\r\n")
        #expect(head.hasPrefix("HTTP/1.1 200") && !head.lowercased().contains("transfer-encoding"))
        for word in ["\0\u{1}binary\r\n", "and more"] {
            try await tunnel.send(word)
            try await #expect(tunnel.read(through: word) == word)
        }
        await tunnel.close()
        let refused = try await RawConnection.open(server.proxy)
        try await refused.send("CONNECT 127.0.0.1:\(forbidden.port) HTTP/1.1\r\nHost: 127.0.0.1:\(forbidden.port)\r\n\r\n")
        try await #expect(refused.response().head.status == 403)
        await refused.close()
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await allowed.stop()
        await forbidden.stop()
    }

    /// `curl -p` opens a tunnel for `http://` too, as `fetch` of Node 24 does.
    @Test func requestsInsideATunnelAreCachedAndQueued() async throws {
        try await World.with { world in
            let url = "http://127.0.0.1:\(world.api.port)/v1/notes/1"
            let tunnel = ["-p", "-x", world.server.proxy]
            let first = try await Curl.send("GET", url, options: tunnel)
            #expect(first.status == 200 && first["cache-status"]?.contains("stored") == true, "\(first.exit) \(first.text)")
            let two = try await Curl.send("GET", url, options: tunnel + [url])
            #expect(two.heads.map(\.status).filter { $0 == 200 }.count >= 2, "a connection with several requests")
            await world.goOffline()
            let stored = try await Curl.send("GET", url, options: tunnel)
            #expect(stored.status == 200 && stored.json?["title"] == "first" && stored["cache-status"]?.contains("hit") == true)
            let write = try await Curl.send(
                "PATCH", url, fields: ["Content-Type: application/json"], body: #"{"title":"new"}"#, options: tunnel)
            #expect(write.status == 202, "\(write.exit) \(write.text)")
        }
    }

    @Test(arguments: Door.allCases) func upgradesPassThrough(_ door: Door) async throws {
        let upstream = try await RawServer.start { connection in
            let head = try await connection.read(through: "\r\n\r\n")
            guard head.lowercased().contains("upgrade: websocket") else { return }
            try await connection.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello")
            try await Self.echo(connection)
        }
        let server = try await ServerProcess.start(ServerSettings(upstream: upstream.port))
        let (address, target) =
            door == .gateway ? (server.gateway, "/chat") : (server.proxy, "http://127.0.0.1:\(upstream.port)/chat")
        let connection = try await RawConnection.open(address)
        try await connection.send(
            "GET \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(upstream.port)\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
        let head = MessageHead(try await connection.read(through: "\r\n\r\n"))
        #expect(head.status == 101 && head["upgrade"]?.lowercased() == "websocket")
        try await #expect(connection.read(through: "hello") == "hello")
        try await connection.send("ping")
        try await #expect(connection.read(through: "ping") == "ping")
        await connection.close()
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await upstream.stop()
    }

    /// Trailers are read within limits, never merged into the head, and reach a client that takes them, without those that belong into a
    /// head (docs/security-model.md#chunked-bodies, RFC 9110 §6.5, RFC 9112 §7.1.2).
    @Test(arguments: ["no-store", "max-age=60"]) func trailersReachWhoTakesThem(caching: String) async throws {
        let upstream = try await RawServer.answering { _ in
            "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nCache-Control: \(caching)\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "5\r\nhello\r\n0\r\nX-Sum: 42\r\nSet-Cookie: evil=1\r\n\r\n"
        }
        let server = try await ServerProcess.start(ServerSettings(upstream: upstream.port))
        let connection = try await RawConnection.open(server.gateway)
        // The second request of each kind has a connection to the upstream that is open.
        let requests = [
            ("TE: trailers\r\n", true), ("TE: gzip;q=0.5, Trailers\r\nConnection: TE\r\n", true), ("", false), ("TE: gzip\r\n", false),
        ]
        for (number, (fields, isTaken)) in requests.enumerated() {
            try await connection.send("GET /\(number) HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n")
            let head = MessageHead(try await connection.read(through: "\r\n\r\n"))
            #expect(head.status == 200 && head["transfer-encoding"] == "chunked" && head["x-sum"] == nil)
            let rest = try await connection.read(through: "\r\n\r\n")
            #expect(rest == "5\r\nhello\r\n0\r\n\(isTaken ? "X-Sum: 42\r\n" : "")\r\n", "\(fields)\(rest.debugDescription)")
        }
        await connection.close()
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await upstream.stop()
    }

    @Test(arguments: Door.allCases) func whatIsOfOneConnectionStaysThere(_ door: Door) async throws {
        try await World.with { world in
            let kept = ["X-Kept: 1", "Accept: application/json"]
            let own = [
                "Connection: keep-alive, X-Hop", "X-Hop: 1", "Keep-Alive: timeout=5", "Proxy-Connection: keep-alive", "TE: gzip",
                "Proxy-Authorization: Basic eDp5", "Rockpool-Policy: queue", "Rockpool-Priority: 3", "Rockpool-Group: x",
            ]
            let reply = try await world.send(
                "PATCH", "/v1/notes/1", via: door, fields: kept + own + ["Content-Type: application/json"], body: "{}")
            #expect(reply.status == 200, "\(reply.text)")
            let seen = try #require(world.requests.last).fields.map { "\($0.name.canonicalName): \($0.value)" }
            #expect(seen.contains("x-kept: 1") && seen.contains("host: 127.0.0.1:\(world.api.port)"))
            let names = ["x-hop", "keep-alive", "proxy-connection", "te", "proxy-authorization"]
            #expect(seen.filter { line in names.contains { line.hasPrefix($0 + ":") } || line.hasPrefix("rockpool-") } == [])
        }
    }
}
