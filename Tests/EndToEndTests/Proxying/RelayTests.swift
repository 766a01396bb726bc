// Responses that are never stored, asked for again and again: passed on without the read pipeline, and the same as through it
// (docs/architecture.md#relays).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(3)), .serialized) struct RelayTests {
    private static let usualHead = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Type: text/plain\r\n"

    private static func ok(_ body: String, _ fields: String = "") -> String {
        usualHead + "X-Request-Id: {n}\r\n\(fields)Content-Length: \(body.count)\r\n\r\n\(body)"
    }

    private func with(_ answer: String, upstream: JSONValue = [:], _ body: (RelaySite) async throws -> Void) async throws {
        try await RelaySite.with(answer, upstream: upstream, body)
    }

    // MARK: the same as through the pipeline

    @Test func aRelayedExchangeIsTheSameAsAnyOther() async throws {
        let hop = "Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n"
        try await with(Self.ok("hello", "Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nX-Empty:\r\n" + hop)) { site in
            let fields = "Connection: keep-alive\r\nCookie: s=1\r\nX-Mine: yes\r\n"
            let full = try await site.get(fields: fields)
            try await site.warm(fields: fields)
            let relayed = try await site.get(fields: fields)
            let last = site.script.requests.count
            #expect(relayed.body == "hello" && relayed.head["x-request-id"] == "\(last)", "\(relayed)")
            let plain = { (head: MessageHead) in
                head.fields.filter { !["x-request-id", "date"].contains($0.name) }.map { "\($0.name): \($0.value)" }.sorted()
            }
            #expect(plain(relayed.head) == plain(full.head))
            #expect(relayed.head["date"] != nil && relayed.head["cache-status"]?.contains("fwd=uri-miss") == true)
            // The origin gets the same lines, whichever way.
            let lines = { (head: String) in Set(head.split(separator: "\r\n").map { $0.lowercased() }) }
            #expect(lines(site.script.requests[last - 1]) == lines(site.script.requests[0]), "\(site.script.requests)")
        }
    }

    /// Clients with tracing send no two requests alike; each is relayed, and the origin gets what its client sent.
    @Test func requestsWithIdsOfTheirOwnAreRelayed() async throws {
        try await with(Self.ok("usual")) { site in
            let ids = { (number: Int) in "traceparent: 00-\(number)-1-01\r\nX-Request-Id: id-\(number)\r\nX-Odd: \(number % 3)\r\n" }
            for number in 0..<10 { _ = try await site.get(fields: ids(number)) }
            let before = try await site.relays()
            for number in 10..<40 {
                let token = number % 2 == 0 ? "Authorization: Bearer user\(number % 5)\r\n" : ""
                try await #expect(site.get(fields: "Accept: a/b\r\n" + ids(number) + token).body == "usual")
                let last = try #require(site.script.requests.last)
                for line in (ids(number) + token).split(separator: "\r\n") { #expect(last.contains("\r\n\(line)\r\n"), "\(last)") }
                #expect(last.contains("Bearer") == !token.isEmpty && last.ranges(of: "X-Request-Id").count == 1, "\(last)")
            }
            // The first two of a shape take the full path, and the first one of each user.
            #expect(try await site.relays() >= before + 20)
        }
    }

    /// The first requests of other users of a shape are no reason to learn it anew.
    @Test func oneShapeServesManyUsers() async throws {
        try await with(Self.ok("usual")) { site in
            let token = { (user: Int) in "Authorization: Bearer user\(user)\r\n" }
            for user in 0..<20 { for _ in 0..<2 { _ = try await site.get(fields: token(user)) } }
            let before = try await site.relays()
            for user in 0..<20 {
                _ = try await site.get(fields: token(user + 100))
                try await #expect(site.get(fields: token(user + 100)).body == "usual")
                #expect(site.script.requests.last?.contains("Bearer user\(user + 100)\r\n") == true)
            }
            #expect(try await site.relays() >= before + 15)
        }
    }

    @Test func chunksAndLengthsOfEverySizeArriveWhole() async throws {
        try await with(Self.ok("x")) { site in
            try await site.warm()
            for size in [0, 1, 1000, 16_384, 70_000, 1_000_000] {
                let body = String(repeating: "0123456789", count: size / 10 + 1).prefix(size)
                site.script.answer = Self.ok(String(body))
                let reply = try await site.get()
                #expect(reply.body == body, "\(size)")
            }
            #expect(try await site.relays() >= 6)
        }
        let chunked = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nTransfer-Encoding: chunked\r\n\r\n"
        try await with(chunked + "5;a=b\r\nhello\r\n3\r\n---\r\n0\r\n\r\n") { site in
            for _ in 0..<8 {
                try await #expect(site.get("/c").body == "hello---")
                try await Task.sleep(for: .milliseconds(20))
            }
            #expect(try await site.relays() > 0)
        }
    }

    /// An origin that serves one connection at a time would wait on a connection without a request.
    @Test(arguments: ["HTTP/1.0 200 OK\r\n", "HTTP/1.1 200 OK\r\nConnection: close\r\n"])
    func anOriginThatEndsItsConnectionsGetsNoOthers(_ start: String) async throws {
        let ending = start + "Cache-Control: no-store\r\nContent-Length: 4\r\n\r\nbody"
        try await with(ending) { site in
            for number in 1...12 {
                try await number < 7 ? #expect(site.get().body == "body") : #expect(site.write("{}").head.status == 200)
                try await Task.sleep(for: .milliseconds(20))
                #expect(site.script.requests.count == number && site.script.connections == number)
            }
            // The same once it was one that keeps them: one for each way at most.
            site.script.answer = Self.ok("kept")
            try await site.warm()
            site.script.answer = ending
            let (requests, connections) = (site.script.requests.count, site.script.connections)
            for _ in 0..<12 { try await #expect(site.get().body == "body") }
            try await Task.sleep(for: .milliseconds(100))
            #expect(site.script.connections - connections <= site.script.requests.count - requests)
        }
    }

    /// Bytes after a response answer no request, whether they come with it or later (RFC 9112 §6.3).
    @Test(arguments: ["", "Cache-Control: no-cache\r\n"], ["", "~"]) func strayBytesAnswerNobody(
        _ fields: String, _ pause: String
    ) async throws {
        try await with(Self.ok("usual")) { site in
            for _ in 0..<6 { try await #expect(site.get(fields: fields).body == "usual") }
            for round in 0..<6 {
                site.script.answer =
                    Self.ok("usual") + pause + "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 4\r\n\r\nevil"
                try await #expect(site.get(fields: fields).body == "usual", "round \(round)")
                site.script.answer = Self.ok("other")
                if !pause.isEmpty { try await Task.sleep(for: .milliseconds(100)) }
                try await #expect(site.get(fields: fields).body == "other", "round \(round)")
            }
        }
    }

    /// What no relay takes is read on kept connections too.
    @Test func readsOfThePipelineKeepTheirConnections() async throws {
        try await with(Self.ok("usual")) { site in
            for _ in 0..<20 { try await #expect(site.get(fields: "Cache-Control: no-cache\r\n").body == "usual") }
            #expect(site.script.requests.count == 20 && site.script.connections <= 2)
            // One that is closed meanwhile is replaced.
            site.script.answer = "close"
            async let reply = site.get(fields: "Cache-Control: no-cache\r\n")
            try await eventually("the request") { site.script.requests.count > 20 }
            site.script.answer = Self.ok("again")
            let (head, body) = try await reply
            #expect(head.status == 200 && body == "again" || head.status == 502, "\(head)")
            try await #expect(site.get(fields: "Cache-Control: no-cache\r\n").body == "again")
        }
    }

    /// No way leads around the network switch.
    @Test func whatTheNetworkSwitchEndsIsNotSentAgain() async throws {
        try await with(Self.ok("usual")) { site in
            let fields = "Cache-Control: no-cache\r\n"
            for _ in 0..<10 { try await #expect(site.get(fields: fields).body == "usual") }
            site.script.answer = "silence"
            let before = site.script.requests.count
            async let reply = site.get(fields: fields)
            try await eventually("the request") { site.script.requests.count > before }
            #expect(try await site.server.command("network", "offline").status == 0)
            #expect(try await reply.head.status >= 500)
            try await Task.sleep(for: .milliseconds(300))
            #expect(site.script.requests.count == before + 1)
        }
    }

    // MARK: other responses

    @Test(arguments: [401, 404, 500, 503]) func anotherStatusIsTheOrigins(_ status: Int) async throws {
        try await with(Self.ok("usual")) { site in
            try await site.warm()
            let before = site.script.requests.count
            let fields = "Cache-Control: no-store\r\nWWW-Authenticate: Basic realm=\"a\"\r\nContent-Length: 3\r\n\r\n"
            site.script.answer = "HTTP/1.1 \(status) No\r\n\(fields)bad"
            let reply = try await site.get()
            #expect(reply.head.status == status && reply.body == "bad", "\(reply)")
            // The answer was used, not asked for again.
            #expect(site.script.requests.count == before + 1)
            site.script.answer = Self.ok("usual")
            try await #expect(site.get().body == "usual")
        }
    }

    @Test func aResponseThatMayBeStoredIsStored() async throws {
        try await with(Self.ok("usual")) { site in
            try await site.warm()
            site.script.answer =
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\nstored"
            try await #expect(site.get().body == "stored")
            let count = site.script.requests.count
            try await eventually("a hit") { try await site.get().head["cache-status"]?.contains("hit") == true }
            // Never anything but what the origin has sent last, and after the first hit no request more.
            let asked = site.script.requests.count
            #expect(asked <= count + 2)
            try await #expect(site.get().body == "stored")
            #expect(site.script.requests.count == asked)
        }
    }

    @Test func interimResponsesReachTheClient() async throws {
        try await with(Self.ok("usual")) { site in
            try await site.warm()
            let pauses = String(repeating: "~", count: 100)
            site.script.answer = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n" + pauses + Self.ok("usual")
            let began = ContinuousClock.now
            let interim = try await site.get()
            #expect(ContinuousClock.now - began < .milliseconds(1500))
            #expect(interim.head.status == 103 && interim.head["link"]?.contains("a.css") == true, "\(interim)")
            let reply = try await site.client.response()
            #expect(reply.head.status == 200 && reply.body == "usual")
        }
    }

    @Test(arguments: [
        usualHead + "X-Request-Id: 1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        usualHead + "X-Request-Id: \u{1}\r\nContent-Length: 5\r\n\r\nhello",
        usualHead + "X-Request-Id: 1\r\nContent-Length: +5\r\n\r\nhello",
        "nonsense\r\n\r\n",
    ]) func aMalformedHeadIsRefused(_ answer: String) async throws {
        try await with(Self.ok("usual")) { site in
            try await site.warm()
            site.script.answer = answer
            try await #expect(site.get().head.status == 502)
            site.script.answer = Self.ok("usual")
            try await eventually("the origin's again") {
                let client = try await RawConnection.open(site.server.gateway)
                try await client.send("GET /now HTTP/1.1\r\nHost: \(site.server.gateway)\r\nUser-Agent: test\r\n\r\n")
                return try await client.response().body == "usual"
            }
        }
    }

    // MARK: connections that end

    @Test func aConnectionThatDiedIsNotTheClients() async throws {
        try await with(Self.ok("usual")) { site in
            try await site.warm()
            // The origin resets the relay's connection in place of an answer: another one brings it.
            site.script.answer = "reset"
            async let reply = site.get()
            try await eventually("the request") { site.script.requests.count >= 3 }
            try await Task.sleep(for: .milliseconds(100))
            site.script.answer = Self.ok("usual")
            let (head, body) = try await reply
            #expect(head.status == 200 && body == "usual" || head.status == 502, "\(head)")
        }
    }

    @Test func anEndWithinTheBodyIsSeenAsOne() async throws {
        try await with(Self.ok("usual")) { site in
            try await site.warm()
            site.script.answer = Self.ok("usual").replacing("Content-Length: 5", with: "Content-Length: 50")
            try await site.client.send("GET /now HTTP/1.1\r\nHost: \(site.server.gateway)\r\nUser-Agent: test\r\n\r\n")
            _ = try await site.client.read(through: "usual")
            // The rest never comes: the origin's connection is closed with its server.
            try await #expect(site.server.change("PUT", "/v1/network", ["mode": "offline"]).status < 300)
            let rest = try await site.client.readToEnd()
            #expect(rest.isEmpty, "\(rest)")
        }
    }

    @Test func aSilentUpstreamTimesOut() async throws {
        try await with(Self.ok("usual"), upstream: ["timeouts": ["first_byte": "1s"]]) { site in
            try await site.warm()
            site.script.answer = "silence"
            let began = ContinuousClock.now
            let reply = try await site.get()
            #expect(reply.head.status == 504 && ContinuousClock.now - began < .seconds(8), "\(reply)")
        }
    }

    @Test func aStreamOfEventsMayBeSilent() async throws {
        let head = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Type: text/event-stream\r\nX-Ends: yes\r\n\r\n"
        let origin = try await RawServer.start { connection in
            _ = try await connection.read(through: "\r\n\r\n", within: .seconds(60))
            try await connection.send(head + "data: 1\n\n")
            try await Task.sleep(for: .milliseconds(2500))
            try await connection.send("data: 2\n\n")
        }
        let server = try await ServerProcess.start(ServerSettings(upstream: origin.port, ["timeouts": ["idle": "1s"]]))
        for round in 0..<4 {
            let reply = try await Curl.send("GET", "http://\(server.gateway)/events", fields: ["Accept: */*"])
            #expect(reply.exit == 0 && reply.text == "data: 1\n\ndata: 2\n\n", "round \(round): \(reply.exit) \(reply.text)")
        }
        try await #expect(server.stop() == .exit(0))
        await origin.stop()
    }

    @Test func thePipelinedNextRequestWaitsItsTurn() async throws {
        try await with(Self.ok("usual")) { site in
            try await site.warm()
            let one = "GET /now HTTP/1.1\r\nHost: \(site.server.gateway)\r\nUser-Agent: test\r\n\r\n"
            for round in 0..<50 {
                let count = site.script.requests.count
                try await site.client.send(one)
                try await site.client.send(one + one.replacing("/now", with: "/other\(round)"))
                for _ in 0..<3 { try await #expect(site.client.response().body == "usual") }
                #expect(site.script.requests.count == count + 3)
                #expect(site.script.requests.last?.hasPrefix("GET /other\(round) ") == true)
            }
        }
    }

    @Test func theSwitchEndsRelaysToo() async throws {
        try await with(Self.ok("usual")) { site in
            try await site.warm()
            try await #expect(site.server.change("PUT", "/v1/network", ["mode": "offline"]).status < 300)
            let count = site.script.requests.count
            try await #expect(site.get().head.status == 504)
            #expect(site.script.requests.count == count)
            try await #expect(site.server.change("PUT", "/v1/network", ["mode": "auto"]).status < 300)
            try await eventually("online") { try await site.get().body == "usual" }
        }
    }

    // MARK: credentials

    @Test func eachCredentialHasItsOwnRule() async throws {
        try await with(Self.ok("usual")) { site in
            try await site.warm(fields: "Authorization: Bearer one\r\n")
            for token in ["one", "two", "one", "three"] {
                _ = try await site.get(fields: "Authorization: Bearer \(token)\r\n")
                #expect(site.script.requests.last?.contains("Bearer \(token)\r\n") == true)
            }
        }
    }
}
