// Partial bodies presented as complete ones, incomplete bodies, and bodies that exceed their declared length (RFC 9111 §3.3, §3.4; RFC 9112
// §8).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct RangeAttackTests {
    private static let full = Attack.get(answer: .body("helloworld"))
    private static func part(_ range: String, _ body: String, of total: String = "10", _ fields: String...) -> Answer {
        let lines = ["HTTP/1.1 206 X", "Cache-Control: public, max-age=600", "Content-Range: bytes \(range)/\(total)"] + fields
        return .message((lines + ["Content-Length: \(body.utf8.count)", "", body]).joined(separator: "\r\n"), closes: false)
    }

    static let attacks = [
        Attack(
            "range-poison", "a part is never served as the whole",
            [Attack.get("/a", "Range: bytes=0-4", answer: part("0-4/10", "hello")), full], expect: .body("helloworld"), .status(200)),
        Attack(
            "range-unsolicited-206", "a part nobody asked for",
            [Attack.get(answer: part("0-4", "hello")), full], expect: .body("helloworld"), .status(200)),
        Attack(
            "range-wrong-place", "another part than was asked for",
            [
                Attack.get("/a", "Range: bytes=0-4", answer: part("5-9", "world")),
                Attack.get("/a", "Range: bytes=5-9", answer: part("5-9", "WORLD")),
            ], expect: .body("WORLD")),
        Attack(
            "range-wrong-length", "a part that is longer than its place",
            [Attack.get("/a", "Range: bytes=0-4", answer: part("0-4", "helloEVIL")), full], expect: .body("helloworld")),
        Attack(
            "range-beyond-total", "a place beyond the whole",
            [Attack.get("/a", "Range: bytes=0-4", answer: part("0-4", "hello", of: "3")), full], expect: .body("helloworld")),
        Attack(
            "range-total-changes", "two totals",
            [
                Attack.get("/a", "Range: bytes=0-4", answer: part("0-4", "AAAAA", "ETag: \"1\"")),
                Attack.get("/a", "Range: bytes=5-19", answer: part("5-19", "BBBBBBBBBBBBBBB", of: "20", "ETag: \"1\"")), full,
            ], expect: .body("helloworld")),
        Attack(
            "range-mix-etag", "RFC 9111 §3.4: a strong validator",
            [
                Attack.get("/a", "Range: bytes=0-4", answer: part("0-4", "AAAAA", "ETag: \"1\"")),
                Attack.get("/a", "Range: bytes=5-9", answer: part("5-9", "BBBBB", "ETag: \"2\"")),
                Attack.get(answer: .body("CCCCCBBBBB", "ETag: \"2\"")),
            ], expect: .nowhere("AAAAABBBBB"), .body("CCCCCBBBBB")),
        Attack(
            "range-mix-weak", "a weak one combines nothing",
            [
                Attack.get("/a", "Range: bytes=0-4", answer: part("0-4", "AAAAA", "ETag: W/\"1\"")),
                Attack.get("/a", "Range: bytes=5-9", answer: part("5-9", "BBBBB", "ETag: W/\"1\"")),
                Attack.get(answer: .body("CCCCCCCCCC", "ETag: W/\"1\"")),
            ], expect: .body("CCCCCCCCCC")),
        Attack(
            "range-if-range-other", "If-Range with another tag gets the whole",
            [
                Attack.get(answer: .body("helloworld", "ETag: \"1\"")),
                Attack.get("/a", "Range: bytes=0-4", "If-Range: \"2\"", answer: .body("never")),
            ], expect: .body("helloworld"), .status(200)),
        Attack(
            "range-flood", "many small ranges cost no more than the whole",
            [
                Attack.get(answer: .body("helloworld")),
                Attack.get("/a", "Range: bytes=0-0" + String(repeating: ",0-0", count: 1500), answer: .body("never")),
            ], expect: .status(200), .body("helloworld")),
        Attack(
            "range-overlap", "overlapping ones are sent once",
            [Attack.get(answer: .body("helloworld")), Attack.get("/a", "Range: bytes=0-7,2-9", answer: .body("never"))],
            expect: .status(206), .body("helloworld")),
        Attack(
            "range-overflow", "numbers that no integer holds",
            [
                Attack.get(answer: .body("helloworld")),
                Attack.get("/a", "Range: bytes=99999999999999999999999-", answer: .body("never")),
            ], expect: .status(416), .body("")),
        Attack(
            "range-suffix-overflow", "",
            [Attack.get(answer: .body("helloworld")), Attack.get("/a", "Range: bytes=-99999999999999999999", answer: .body("never"))],
            expect: .status(206), .body("helloworld")),
        Attack(
            "truncated-not-reused", "RFC 9111 §3.3",
            [Attack.get(answer: .raw("hello", "Content-Length: 100")), Attack.get(answer: .body("full"))], expect: .body("full")),
        Attack(
            "truncated-not-reused-offline", "nor offline",
            [Attack.get(answer: .raw("hello", "Content-Length: 100", "ETag: \"1\"")), Attack.get(answer: .down)],
            expect: .status(502, 504), .nowhere("hello")),
        Attack(
            "truncated-chunked", "",
            [Attack.get(answer: .raw("5\r\nhello\r\n", "Transfer-Encoding: chunked")), Attack.get(answer: .body("full"))],
            expect: .body("full")),
        Attack(
            "chunked-trailer", "trailers are merged into nothing",
            [
                Attack.get(answer: .raw("2\r\nok\r\n0\r\nSet-Cookie: evil=1\r\nX-Evil: evil\r\n\r\n", "Transfer-Encoding: chunked")),
                Attack.get(answer: .body("never")),
            ], expect: .body("ok"), .nowhere("evil")),
        Attack(
            "response-splitting", "what follows an answer answers nobody",
            [
                Attack.get(
                    answer: .message(
                        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL", closes: false)),
                Attack.get("/b", answer: .body("good")),
            ], expect: .body("good")),
        Attack(
            "304-unasked", "an answer to a question nobody asked",
            [Attack.get(answer: .raw("", status: 304, "ETag: \"evil\"")), Attack.get(answer: .body("full"))], expect: .body("full")),
        Attack(
            "304-with-other-tag", "RFC 9111 §4.3.4: it is about something else",
            [
                Attack.get(answer: .body("good", cc: "max-age=0", "ETag: \"a\"")),
                Attack.get(answer: .raw("", cc: "max-age=600", status: 304, "ETag: \"evil\"", "X-Evil: evil")),
                Attack.get(answer: .body("new", cc: "max-age=600")),
            ], expect: .nowhere("evil"), .body("new")),
        Attack(
            "304-with-a-type", "a validation changes no bytes' meaning",
            [
                Attack.get(answer: .body("good", cc: "max-age=0", "ETag: \"a\"")),
                Attack.get(answer: .raw("", cc: "max-age=600", status: 304, "ETag: \"a\"", "Content-Encoding: gzip", "Content-Length: 1")),
                Attack.get(answer: .body("never")),
            ], expect: .body("good"), .noField("content-encoding")),
        Attack(
            "invalidation-elsewhere", "RFC 9111 §4.4: an unsafe method invalidates its own origin's only",
            [
                Attack.get("/b", answer: .body("kept")),
                .init(method: "POST", body: "x", answer: .body("ok", "Location: http://other.test/b")),
                Attack.get("/b", answer: .body("never")),
            ], expect: .body("kept")),
        Attack(
            "content-length-list", "two lengths",
            [Attack.get(answer: .raw("hello!", "Content-Length: 5", "Content-Length: 6")), Attack.get(answer: .body("full"))],
            expect: .body("full")),
        Attack(
            "close-delimited", "an end that proves nothing is kept by no one for long, and never cut",
            [Attack.get(answer: .raw("hello")), Attack.get(answer: .raw("hello"))], expect: .body("hello")),
    ]

    @Test(arguments: attacks, AttackedServer.policies)
    func nothingPartialOrForgedIsServedAsTheWhole(_ attack: Attack, _ policy: String) async throws {
        try await AttackedServer.play(attack, policy: policy)
    }

    /// A body larger than its category's largest object is forwarded without being stored, and evicts no other entry.
    @Test(arguments: ["Content-Length: 400000", "Transfer-Encoding: chunked"], AttackedServer.policies)
    func aBodyLargerThanTheCacheEvictsNothing(_ framing: String, _ policy: String) async throws {
        let limits: JSONValue = ["cache_limit": "8 MB"]
        try await AttackedServer.with(policy: policy, storage: limits) { attacked in
            _ = try await attacked.send(Attack.get("/kept", answer: .body("kept")))
            let piece = String(repeating: "x", count: 400_000)
            let isChunked = framing.hasPrefix("T")
            let count = 30
            let body =
                isChunked ? String(repeating: "61A80\r\n\(piece)\r\n", count: count) + "0\r\n\r\n" : String(repeating: piece, count: count)
            let length = isChunked ? framing : "Content-Length: \(count * piece.utf8.count)"
            let large = try await attacked.send(Attack.get("/large", answer: .raw(body, length)))
            #expect(large.status == 200 && large.body.count == count * piece.utf8.count)
            #expect(Files.allocatedBytes(of: attacked.server.cacheDirectory) <= 8_000_000)
            try await #expect(attacked.send(Attack.get("/kept", answer: .down)).text == "kept")
            try await #expect(attacked.send(Attack.get("/large", answer: .down)).status >= 500)
        }
    }

    /// Content labelled as gzip is never unpacked: bodies are stored and sent as received, so a decompression bomb keeps its transferred
    /// size.
    @Test(arguments: AttackedServer.policies) func aBombIsNeverUnpacked(_ policy: String) async throws {
        try await AttackedServer.with(policy: policy) { attacked in
            let before = try attacked.server.residentBytes()
            // 2 MB labelled as gzip, mostly zeros; all bytes can be sent as text by the script.
            let bomb = "\u{1F}\u{08}" + String(repeating: "\0", count: 2_000_000)
            let reply = try await attacked.send(Attack.get(answer: .body(bomb, "Content-Encoding: gzip", "Content-Type: application/json")))
            #expect(reply.body.count == bomb.utf8.count && reply["content-encoding"] == "gzip")
            let shown = try await attacked.server.get("/v1/cache/explain?url=http://\(attacked.server.gateway)/a")
            #expect(shown.status < 500)
            try #expect(attacked.server.residentBytes() - before < 32 << 20)
        }
    }
}
