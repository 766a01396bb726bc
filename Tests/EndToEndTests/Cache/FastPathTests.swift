// Requests that repeat are answered before they are decoded, with the same bytes as on the full path, and by the identity of their client
// (docs/architecture.md#parts *memory tier*).
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(3)), .serialized) struct FastPathTests {
    private static let body = String(repeating: "0123456789", count: 200)

    /// The answer of the upstream: the credential decides about `/private`, and `/short` is soon stale.
    private static func answer(_ request: String) -> String {
        let head = MessageHead(request)
        let target = request.split(separator: " ").dropFirst().first ?? ""
        let credential = ["authorization", "cookie", "x-api-key"].compactMap { head[$0] }.joined(separator: "; ")
        let (control, body) =
            switch target {
            case "/private": ("private, max-age=600", credential)
            case "/short": ("max-age=1", Self.body)
            default: ("public, max-age=600", Self.body)
            }
        return "HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\nCache-Control: \(control)\r\nETag: \"one\"\r\n"
            + "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n\(body)"
    }

    /// Runs `body` with a server whose declared upstream is a script.
    static func with(
        _ settings: (Int) -> ServerSettings = { ServerSettings(upstream: $0) }, _ body: (ServerProcess, RawServer) async throws -> Void
    ) async throws {
        let origin = try await RawServer.answering(answer)
        let server = try await ServerProcess.start(settings(origin.port))
        try await body(server, origin)
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await origin.stop()
    }

    /// A connection to the gateway, which is named in `Host`.
    private struct Client {
        let connection: RawConnection
        let host: String

        init(_ server: ServerProcess) async throws {
            connection = try await RawConnection.open(server.gateway)
            host = server.gateway
        }
    }

    private func request(_ method: String, _ path: String, at host: String, _ fields: [String]) -> String {
        (["\(method) \(path) HTTP/1.1", "Host: \(host)"] + fields + ["", ""]).joined(separator: "\r\n")
    }

    /// Sends one request and returns its answer; the fields that change with time are reduced to their names.
    private func answer(
        _ client: Client, _ method: String, _ path: String, _ fields: [String]
    ) async throws -> (
        status: Int, fields: [String], body: String
    ) {
        try await client.connection.send(request(method, path, at: client.host, fields))
        let head = MessageHead(try await client.connection.read(through: "\r\n\r\n"))
        let hasBody = method != "HEAD" && head.status != 304
        let length = hasBody ? head["content-length"].flatMap { Int($0) } ?? 0 : 0
        let received = String(decoding: try await client.connection.read(bytes: length), as: UTF8.self)
        return (head.status, Self.steady(head), received)
    }

    /// The fields of a head; those that change with time are reduced to their names.
    static func steady(_ head: MessageHead) -> [String] {
        head.fields.map { field in
            ["age", "date"].contains(field.name)
                ? field.name : "\(field.name): \(field.value.replacing(/ttl=-?[0-9]+/, with: "ttl"))"
        }
    }

    static func hotHits(_ server: ServerProcess) async throws -> Int {
        let text = try await server.get("/metrics").text
        let line = text.split(separator: "\n").first { $0.hasPrefix("rockpool_hot_hits_total") }
        return line.flatMap { Double($0.split(separator: " ").last ?? "") }.map { Int($0) } ?? 0
    }

    typealias Sent = (method: String, fields: [String], status: Int)

    static let requests: [Sent] = [
        ("GET", [], 200), ("HEAD", [], 200),
        ("GET", ["Authorization: Bearer one"], 200), ("GET", ["Cookie: session=one; other=two"], 200), ("GET", ["X-Api-Key: one"], 200),
        ("GET", ["If-None-Match: \"one\""], 304), ("HEAD", ["If-None-Match: \"one\""], 304),
        ("GET", ["If-Modified-Since: Thu, 01 Jan 2026 00:00:00 GMT"], 304),
        ("GET", ["Authorization: Bearer one", "If-None-Match: \"one\""], 304),
        ("GET", ["Range: bytes=100-299"], 206), ("GET", ["Range: bytes=-5", "Authorization: Bearer one"], 206),
        ("GET", ["Accept-Encoding: gzip, br"], 200),
    ]

    /// Each request is sent until it is answered on the fast path, and all answers are equal.
    @Test(arguments: requests, ["/public", "/private"])
    func aRepeatedRequestGetsTheSameAnswer(_ sent: Sent, _ path: String) async throws {
        try await Self.with { server, _ in
            let client = try await Client(server)
            let credential = sent.fields.filter { !$0.hasPrefix("If-") && !$0.hasPrefix("Range") }
            if path == "/private", credential.isEmpty || credential[0].hasPrefix("Accept") { return }
            _ = try await answer(client, "GET", path, credential)
            let full = try await answer(client, sent.method, path, sent.fields)
            if sent.method == "HEAD" { _ = try await answer(client, "GET", path, credential) }
            try await eventually("a hot hit") {
                let before = try await Self.hotHits(server)
                let hot = try await answer(client, sent.method, path, sent.fields)
                #expect(hot.status == full.status && hot.fields == full.fields && hot.body == full.body)
                return try await Self.hotHits(server) > before
            }
            let mine = sent.fields.first { $0.contains(": ") }.map { String($0.split(separator: ": ")[1]) }
            let whole = path == "/private" ? mine ?? "" : Self.body
            if full.status == 200, sent.method == "GET" { #expect(full.body == whole) }
            if path == "/public" { #expect(full.status == sent.status) }
            await client.connection.close()
        }
    }

    /// Private answers are never mixed up, on one connection or several, whatever the order.
    @Test func noAnswerIsAnothersOnAnyConnection() async throws {
        try await Self.with { server, _ in
            let clients = [try await Client(server), try await Client(server)]
            let credentials = (1...8).flatMap { ["Authorization: Bearer \($0)", "Cookie: session=\($0)", "X-Api-Key: \($0)"] }
            var random = Chance(26)
            let before = try await Self.hotHits(server)
            for _ in 0..<1500 {
                let credential = try #require(credentials.randomElement(using: &random))
                let client = try #require(clients.randomElement(using: &random))
                let answer = try await answer(client, "GET", "/private", [credential])
                #expect(answer.body == credential.split(separator: ": ")[1], "\(credential)")
            }
            let without = try await answer(clients[0], "GET", "/private", [])
            #expect(without.body.isEmpty)
            try await #expect(Self.hotHits(server) - before > 1000)
            for client in clients { await client.connection.close() }
        }
    }

    /// A copy that is served because the upstream is away is also repeated, with the fields that say so, until the upstream is back.
    @Test func aStaleAnswerRepeatsWhileTheUpstreamIsAway() async throws {
        try await Self.with { server, _ in
            let client = try await Client(server)
            let bearer = ["Authorization: Bearer one"]
            _ = try await answer(client, "GET", "/short", bearer)
            try await Task.sleep(for: .seconds(2))
            try await #expect(server.change("PUT", "/v1/network", ["mode": "offline"]).status < 300)
            var answers: [[String]] = []
            let end = ContinuousClock.now + .seconds(2)
            while ContinuousClock.now < end {
                answers.append(try await answer(client, "GET", "/short", bearer).fields)
                // A connection may carry a thousand requests.
                try await Task.sleep(for: .milliseconds(5))
            }
            let first = try #require(answers.first)
            #expect(first.contains { $0.hasPrefix("cache-status:") && $0.contains("detail=offline") }, "\(first)")
            #expect(first.contains { $0.hasPrefix("proxy-status:") }, "\(first)")
            #expect(answers.allSatisfy { $0 == first })
            let stats = try await server.get("/v1/stats")
            #expect(stats.text.contains("stale"))
            try await #expect(server.change("PUT", "/v1/network", ["mode": "auto"]).status < 300)
            let back = try await answer(client, "GET", "/short", bearer).fields
            #expect(back.contains { $0.hasPrefix("cache-status:") && !$0.contains("offline") }, "\(back)")
            await client.connection.close()
        }
    }

    /// A write of the client shows in its next read, however hot the read was.
    @Test func aWriteIsReadBackAtOnce() async throws {
        try await World.with { world in
            let client = try await Client(world.server)
            let bearer = ["Authorization: Bearer one"]
            for _ in 0..<20 { _ = try await answer(client, "GET", "/v1/notes/1", bearer) }
            try await #expect(world.server.change("PUT", "/v1/network", ["mode": "offline"]).status < 300)
            for number in 0..<20 {
                _ = try await answer(client, "GET", "/v1/notes/1", bearer)
                _ = try await world.queued("PATCH", "/v1/notes/1", fields: bearer, body: "{\"title\": \"t\(number)\"}")
                let read = try await answer(client, "GET", "/v1/notes/1", bearer)
                #expect(read.body.contains("t\(number)"), "\(read)")
            }
            await client.connection.close()
            try await #expect(world.server.change("PUT", "/v1/network", ["mode": "auto"]).status < 300)
        }
    }
}
