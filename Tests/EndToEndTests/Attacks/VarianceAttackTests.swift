// Variants and errors: the request fields of one client must not change a resource for other clients (RFC 9111 §4.1; CPDoS, Nguyen 2019).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct VarianceAttackTests {
    private static let good = Attack.get(answer: .body("good"))
    private static let big = "X-Big: " + String(repeating: "A", count: 20_000)

    static let attacks = [
        Attack(
            "vary-basic", "RFC 9111 §4.1",
            [
                Attack.get("/a", "Accept-Language: de", answer: .body("de", "Vary: Accept-Language")),
                Attack.get("/a", "Accept-Language: en", answer: .body("en", "Vary: Accept-Language")),
            ], expect: .body("en")),
        Attack(
            "vary-absent", "a field that is absent is a value",
            [Attack.get("/a", "X-Kind: evil", answer: .body("evil", "Vary: X-Kind")), good], expect: .body("good")),
        Attack(
            "vary-star", "", [Attack.get(answer: .body("1", "Vary: *")), Attack.get(answer: .body("2", "Vary: *"))], expect: .body("2")),
        Attack(
            "vary-star-in-list", "", [Attack.get(answer: .body("1", "Vary: Accept, *")), Attack.get(answer: .body("2"))], expect: .body("2")
        ),
        Attack(
            "vary-garbage", "what cannot be read matches nobody", [Attack.get(answer: .body("1", "Vary: a b")), good], expect: .body("good")
        ),
        Attack(
            "vary-two-lines", "both lines count",
            [Attack.get("/a", "X-B: evil", answer: .body("evil", "Vary: X-A", "Vary: X-B")), good], expect: .body("good")),
        Attack(
            "vary-case", "a name is case-insensitive",
            [Attack.get("/a", "X-Kind: evil", answer: .body("evil", "Vary: x-kInD")), good], expect: .body("good")),
        Attack(
            "vary-cookie", "", [Attack.get("/a", "Cookie: a=evil", answer: .body("evil", "Vary: Cookie")), good], expect: .body("good")),
        Attack(
            "vary-authorization", "",
            [Attack.get("/a", "Authorization: Bearer A", answer: .body("SECRET", "Vary: Authorization")), good], expect: .body("good")),
        Attack(
            "vary-user-agent", "", [Attack.get("/a", "User-Agent: evil", answer: .body("evil", "Vary: User-Agent")), good],
            expect: .body("good")),
        Attack(
            "vary-join", "two fields are not one of the same bytes",
            [
                Attack.get("/a", "X-A: 1", "X-B: 2", answer: .body("evil", "Vary: X-A, X-B")),
                Attack.get("/a", "X-A: 1\nx-b: 2", answer: .body("good", "Vary: X-A, X-B")),
            ], expect: .nowhere("never said")),
        Attack(
            "vary-hundred-names", "a long Vary is bounded work",
            [
                Attack.get("/a", "X-99: evil", answer: .body("evil", "Vary: " + (0..<100).map { "X-\($0)" }.joined(separator: ", "))), good,
            ], expect: .body("good")),
        Attack(
            "accept-encoding-identity", "a coding nobody asked for",
            [
                Attack.get("/a", "Accept-Encoding: gzip", answer: .body("zipped", "Content-Encoding: gzip", "Vary: Accept-Encoding")),
                Attack.get("/a", "Accept-Encoding: identity", answer: .body("plain", "Vary: Accept-Encoding")),
            ], expect: .body("plain")),
        // Errors that the attacker provoked.
        Attack("cpdos-oversize-header", "HHO", [Attack.get("/a", big, answer: .body("bad", status: 400)), good], expect: .body("good")),
        Attack("cpdos-oversize-431", "HHO", [Attack.get("/a", big, answer: .body("bad", status: 431)), good], expect: .body("good")),
        Attack("cpdos-oversize-413", "HHO", [Attack.get("/a", big, answer: .body("bad", status: 413)), good], expect: .body("good")),
        Attack("cpdos-oversize-502", "HHO", [Attack.get("/a", big, answer: .body("bad", status: 502)), good], expect: .body("good")),
        Attack("cpdos-oversize-404", "HHO", [Attack.get("/a", big, answer: .body("bad", status: 404)), good], expect: .body("good")),
        Attack(
            "cpdos-method-override", "HMO",
            [Attack.get("/a", "X-HTTP-Method-Override: POST", answer: .body("bad", status: 405)), good], expect: .body("good")),
        Attack(
            "cpdos-method-override-404", "HMO",
            [Attack.get("/a", "X-HTTP-Method: DELETE", answer: .body("bad", status: 404)), good], expect: .body("good")),
        Attack(
            "cpdos-meta-character", "HMC: refused before the origin sees it",
            [Attack.get("/a", "X-Meta: \u{07}", answer: .body("bad", status: 400)), good], expect: .body("good"), .asked(1...1)),
        Attack("cpdos-range", "", [Attack.get("/a", "Range: bytes=cow", answer: .body("bad", status: 400)), good], expect: .body("good")),
        Attack(
            "cpdos-416", "", [Attack.get("/a", "Range: bytes=99-", answer: .body("", status: 416, "Content-Range: bytes */4")), good],
            expect: .body("good")),
        Attack("cpdos-412", "", [Attack.get("/a", "If-Match: \"x\"", answer: .body("bad", status: 412)), good], expect: .body("good")),
        Attack(
            "cpdos-415", "", [Attack.get("/a", "Content-Type: evil/x", answer: .body("bad", status: 415)), good], expect: .body("good")),
        Attack(
            "cpdos-odd-field", "a field that few clients send",
            [Attack.get("/a", "X-Odd: 1", answer: .body("bad", status: 400)), good], expect: .body("good")),
        Attack(
            "cpdos-odd-field-404", "which would stand for its whole freshness",
            [Attack.get("/a", "Translate: f", answer: .body("bad", status: 404)), good], expect: .body("good")),
        Attack(
            "cpdos-odd-field-private", "nor offline",
            [Attack.get("/a", "X-Odd: 1", answer: .body("bad", status: 404, cc: "private")), Attack.get(answer: .down)],
            expect: .nowhere("bad"), .status(502, 504)),
        Attack(
            "cpdos-no-cache", "renewed at will",
            [Attack.get("/a", "Cache-Control: no-cache", answer: .body("bad", status: 503)), good], expect: .body("good")),
        Attack(
            "cpdos-reload", "", [Attack.get("/a", "Cache-Control: max-age=0", answer: .body("bad", status: 410)), good],
            expect: .body("good")),
        Attack(
            "cpdos-credential", "an error of a false credential is its sender's own",
            [Attack.get("/a", "Authorization: Bearer x", answer: .body("bad", status: 403)), good], expect: .body("good")),
        Attack("cpdos-405-heuristic", "", [Attack.get("/a", answer: .body("bad", status: 405, cc: nil)), good], expect: .body("good")),
        Attack("cpdos-501-heuristic", "", [Attack.get("/a", answer: .body("bad", status: 501, cc: nil)), good], expect: .body("good")),
        Attack("cpdos-500", "", [Attack.get("/a", answer: .body("bad", status: 500, cc: nil)), good], expect: .body("good")),
        Attack(
            "cpdos-over-a-good-copy", "an error does not take a good copy's place",
            [
                Attack.get(answer: .body("good", cc: "max-age=0", "ETag: \"a\"")), Attack.get(answer: .body("bad", status: 400)),
                Attack.get(answer: .down),
            ], expect: .body("good")),
        Attack(
            "redirect-loop-cached", "a redirect without freshness does not stick",
            [Attack.get(answer: .body("", status: 301, cc: nil, "Location: /a")), good], expect: .body("good")),
        Attack(
            "redirect-302", "", [Attack.get(answer: .body("", status: 302, cc: nil, "Location: https://evil.test/")), good],
            expect: .body("good")),
    ]

    @Test(arguments: attacks, AttackedServer.policies)
    func nobodyChoosesForTheOthers(_ attack: Attack, _ policy: String) async throws {
        if attack.name == "cpdos-over-a-good-copy", policy == "standard" { return }
        try await AttackedServer.play(attack, policy: policy)
    }

    /// An error with explicit freshness is served for ten seconds at most, not for the ten minutes it declares.
    @Test(arguments: AttackedServer.policies) func anErrorsFreshnessIsCapped(_ policy: String) async throws {
        try await AttackedServer.with(policy: policy) { attacked in
            _ = try await attacked.send(Attack.get(answer: .body("bad", status: 400)))
            let hit = try await attacked.send(Attack.get(answer: .body("good")))
            let ttl = hit["cache-status"]?.split(separator: "ttl=").last.flatMap { Int($0.prefix { $0.isNumber }) }
            #expect(hit.text == "bad" && ttl.map { $0 <= 10 } == true, "\(hit["cache-status"] ?? "")")
        }
    }

    /// The errors that one client provokes do not remove a good copy, however often it repeats its requests.
    @Test(arguments: AttackedServer.policies) func oneClientMakesNothingGoneForTheOthers(_ policy: String) async throws {
        try await AttackedServer.with(policy: policy) { attacked in
            _ = try await attacked.send(Self.good)
            for fields in [["Cache-Control: no-cache", "X-Odd: 1"], ["Cache-Control: no-cache"], ["Cache-Control: max-age=0"]] {
                for _ in 0..<2 {
                    let told = try await attacked.send(Attack.Step(fields: fields, answer: .body("gone", status: 404)))
                    #expect(told.status == 404)
                }
            }
            let others = try await attacked.send(Attack.get(answer: .body("asked")))
            #expect(others.text == "good" && attacked.asked("/a") == 7)
        }
    }

    /// Requests that follow each other at once, as one client may send them, do not make a resource count as gone.
    @Test(arguments: AttackedServer.policies) func whatIsGoneIsNotLearntAtOnce(_ policy: String) async throws {
        try await AttackedServer.with(policy: policy) { attacked in
            _ = try await attacked.send(Attack.get(answer: .body("good", cc: "max-age=0")))
            for _ in 0..<3 { try await #expect(attacked.send(Attack.get(answer: .body("gone", status: 410))).status == 410) }
            let next = try await attacked.send(Attack.get(answer: .body("asked")))
            #expect(next.text == "asked" && attacked.asked("/a") == 5, "\(next.text)")
        }
    }

    /// An excessive number of variants: the cache stays within its limit, and other entries stay in the cache.
    @Test(arguments: AttackedServer.policies) func anExplosionOfVariantsIsBounded(_ policy: String) async throws {
        try await AttackedServer.with(policy: policy, storage: ["cache_limit": "8 MB"]) { attacked in
            _ = try await attacked.send(Attack.get("/kept", answer: .body("kept")))
            attacked.answer(.body(String(repeating: "x", count: 1000), "Vary: User-Agent"))
            let connection = try await RawConnection.open(attacked.server.gateway)
            for number in 0..<900 {
                try await connection.send("GET /a HTTP/1.1\r\nHost: localhost\r\nUser-Agent: ua\(number)\r\n\r\n")
                try await #expect(connection.response().head.status == 200)
            }
            await connection.close()
            let listed = try await attacked.server.get("/v1/cache?prefix=http").json?["items"]?.array ?? []
            let variants = listed.compactMap { $0["variants"]?.integer }.max() ?? 0
            #expect(variants > 0 && variants <= 64, "\(listed)")
            try await #expect(attacked.send(Attack.get("/kept", answer: .down)).text == "kept")
            #expect(Files.allocatedBytes(of: attacked.server.cacheDirectory) <= 8_000_000)
        }
    }
}
