// Random requests are answered on the fast path with the bytes of the full path (docs/architecture.md#parts *memory tier*).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(5)), .serialized) struct FastPathPropertyTests {
    /// Rounds of one seed; each has a request of its own.
    private static let rounds = 150

    /// The answer of the upstream: the target and the credential decide everything.
    private static func answer(_ request: String) -> String {
        let head = MessageHead(request)
        let target = request.split(separator: " ").dropFirst().first ?? "/"
        let credential = ["authorization", "cookie", "x-api-key"].compactMap { head[$0] }.joined(separator: "; ")
        var chance = Chance(target.utf8.reduce(UInt64(1)) { ($0 ^ UInt64($1)) &* 0x9E37_79B9_7F4A_7C15 })
        let status = ["200 OK", "200 OK", "200 OK", "200 OK", "404 Not Found", "301 Moved Permanently", "410 Gone"].pick(&chance)
        let line = "\(target) of \(credential.isEmpty ? "nobody" : credential)\n"
        let body = String(repeating: line, count: [0, 1, 1, 40, 400].pick(&chance))
        var fields = ["Content-Length: \(body.utf8.count)", "Content-Type: \(["text/plain", "application/json"].pick(&chance))"]
        fields += [
            "Cache-Control: "
                + [
                    "max-age=600", "public, max-age=600", "private, max-age=600", "no-cache", "max-age=1, stale-while-revalidate=600",
                    "max-age=0, must-revalidate", "no-store", "max-age=600, immutable", "s-maxage=600",
                ].pick(&chance)
        ]
        fields += [[], ["ETag: \"one\""], ["ETag: \"one\""], ["ETag: W/\"one\""]].pick(&chance)
        fields += [[], ["Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT"]].pick(&chance)
        fields += [[], [], ["Vary: Accept"], ["Vary: Accept-Encoding, Accept-Language"], ["Vary: Origin"]].pick(&chance)
        fields += [[], [], ["Age: 5"], ["Set-Cookie: seen=1"], ["Link: </next>; rel=next"], ["Warning: 199 - x", "X-Two: 1", "X-Two: 2"]]
            .pick(&chance)
        return "HTTP/1.1 \(status)\r\n" + fields.joined(separator: "\r\n") + "\r\n\r\n" + body
    }

    /// A request of random method, target, fields and spelling.
    private static func request(to host: String, _ chance: inout Chance) -> (isHead: Bool, text: String) {
        let isHead = Int.random(in: 0..<5, using: &chance) == 0
        let kinds: [[String]] = [
            ["", "", "", "Authorization: Bearer 1", "Authorization: Bearer 2", "Cookie: session=1", "X-Api-Key: 1"],
            [
                "", "", "", "If-None-Match: \"one\"", "If-None-Match: W/\"one\"", "If-None-Match: \"zero\", \"one\"",
                "If-None-Match: \"two\"", "If-None-Match: *", "If-Modified-Since: Thu, 01 Jan 2026 00:00:00 GMT",
                "If-Modified-Since: Fri, 01 Jan 2027 00:00:00 GMT",
                "If-Modified-Since: Wed, 01 Jan 2025 00:00:00 GMT", "If-Modified-Since: today",
            ],
            [
                "", "", "", "", "Range: bytes=0-9", "Range: bytes=-5", "Range: bytes=10-", "Range: bytes=5-2",
                "Range: bytes=99999-", "Range: lines=1-2",
            ],
            Array(repeating: "", count: 14) + ["If-Range: \"one\"", "If-Range: \"two\""],
            ["", "", "Accept-Encoding: gzip, br", "Accept-Encoding: identity", "Accept-Encoding: gzip;q=0"],
            ["", "Accept: */*", "Accept: application/json", "Accept: text/plain;q=0.5"],
            ["", "Accept-Language: de, en;q=0.5"],
            Array(repeating: "", count: 16)
                + ["Cache-Control: max-age=0", "Cache-Control: max-age=100", "Cache-Control: max-stale", "Pragma: no-cache"],
            ["", "", "User-Agent: test", "Referer: http://a.test/", "X-Other: 1", "Origin: http://a.test", "Connection: keep-alive"],
        ]
        // Most requests have few of them: the fast path refuses a request for one field that it does not know.
        var fields = kinds.filter { _ in Int.random(in: 0..<3, using: &chance) == 0 }.map { $0.pick(&chance) }.filter { !$0.isEmpty }
        // A third of the requests is spelled in ways that few clients use.
        if Int.random(in: 0..<3, using: &chance) == 0 {
            fields = fields.map { field in [field, field.lowercasedName, field.replacing(": ", with: ":"), field + " "].pick(&chance) }
        }
        fields.shuffle(using: &chance)
        let target = "/\(Int.random(in: 0..<40, using: &chance))"
        let lines = ["\(isHead ? "HEAD" : "GET") \(target) HTTP/1.1", "Host: \(host)"] + fields
        return (isHead, lines.joined(separator: "\r\n") + "\r\n\r\n")
    }

    /// Sends a request, in two pieces for the full path, and returns the whole response.
    private static func send(
        _ request: (isHead: Bool, text: String), on connection: RawConnection, inPieces: Bool = false
    ) async throws -> String {
        if inPieces {
            let middle = request.text.utf8.count / 2
            try await connection.send(Array(request.text.utf8.prefix(middle)))
            try await Task.sleep(for: .milliseconds(3))
            try await connection.send(Array(request.text.utf8.dropFirst(middle)))
        } else {
            try await connection.send(request.text)
        }
        let text = try await connection.read(through: "\r\n\r\n")
        let head = MessageHead(text)
        let hasBody = !request.isHead && head.status != 304 && head.status != 204
        let length = hasBody ? head["content-length"].flatMap { Int($0) } ?? 0 : 0
        return text + String(decoding: try await connection.read(bytes: length), as: UTF8.self)
    }

    @Test(arguments: [UInt64(1), 2, 3]) func everyAnswerHasTheBytesOfTheFullPath(seed: UInt64) async throws {
        let origin = try await RawServer.answering(Self.answer)
        let server = try await ServerProcess.start(ServerSettings(upstream: origin.port))
        var chance = Chance(seed)
        var hot = 0
        for _ in 0..<Self.rounds {
            let connection = try await RawConnection.open(server.gateway)
            let request = Self.request(to: server.gateway, &chance)
            for _ in 0..<4 { _ = try await Self.send(request, on: connection) }
            let before = try await FastPathTests.hotHits(server)
            var (fast, full) = ("", "-")
            // `Age`, `Date` and what expires change with time: both answers are of one moment in one of these attempts.
            for _ in 0..<8 where fast != full {
                fast = try await Self.send(request, on: connection)
                full = try await Self.send(request, on: connection, inPieces: true)
            }
            #expect(fast == full, "\(request.text)")
            if try await FastPathTests.hotHits(server) > before { hot += 1 }
            await connection.close()
        }
        #expect(hot > Self.rounds / 8, "\(hot) requests were answered on the fast path")
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await origin.stop()
    }
}

extension Array {
    /// A random element. The array is not empty.
    fileprivate func pick(_ chance: inout Chance) -> Element { self[Int.random(in: 0..<count, using: &chance)] }
}

extension String {
    /// The field with its name in lower case.
    fileprivate var lowercasedName: String {
        guard let colon = firstIndex(of: ":") else { return self }
        return self[..<colon].lowercased() + self[colon...]
    }
}
