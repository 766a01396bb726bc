// The owner of a stored response: credentials, cookies, and responses that must not be stored at all (RFC 9111 §3.5, §5.2.2;
// docs/security-model.md#partitions).
import RockpoolTesting
import Testing

@Suite(.serialized) struct CredentialAttackTests {
    private static let (a, b) = ("Authorization: Bearer A", "Authorization: Bearer B")
    private static let no = Answer.body("no", status: 401, cc: "no-store")

    static let attacks = [
        Attack(
            "auth-no-directive", "RFC 9111 §3.5",
            [Attack.get("/a", a, answer: .body("SECRET-A", cc: "max-age=600")), Attack.get(answer: no)],
            expect: .status(401), .nowhere("SECRET")),
        Attack(
            "auth-other-token", "", [Attack.get("/a", a, answer: .body("SECRET-A", cc: "max-age=600")), Attack.get("/a", b, answer: no)],
            expect: .status(401), .nowhere("SECRET")),
        Attack(
            "auth-same-token-offline", "one's own is there offline",
            [Attack.get("/a", a, answer: .body("SECRET-A", cc: "max-age=600")), Attack.get("/a", a, answer: .down)],
            expect: .body("SECRET-A")),
        Attack(
            "auth-none-after-private-offline", "nobody else's is, offline neither",
            [Attack.get("/a", a, answer: .body("SECRET-A", cc: "private, max-age=600")), Attack.get(answer: .down)],
            expect: .status(502, 504), .nowhere("SECRET")),
        Attack(
            "auth-forged-token-offline", "a forged token reads nothing",
            [Attack.get("/a", a, answer: .body("SECRET-A", cc: "max-age=600")), Attack.get("/a", b, answer: .down)],
            expect: .status(502, 504), .nowhere("SECRET")),
        Attack(
            "auth-public-explicit", "public is everybody's",
            [Attack.get("/a", a, answer: .body("PUB")), Attack.get(answer: .body("OTHER"))], expect: .body("PUB")),
        Attack(
            "auth-s-maxage", "so is s-maxage",
            [Attack.get("/a", a, answer: .body("PUB", cc: "s-maxage=600")), Attack.get(answer: .body("OTHER"))], expect: .body("PUB")),
        Attack(
            "auth-private-s-maxage", "unless it is private",
            [Attack.get("/a", a, answer: .body("SECRET-A", cc: "private, s-maxage=600")), Attack.get(answer: no)],
            expect: .nowhere("SECRET")),
        Attack(
            "auth-public-private", "private wins",
            [Attack.get("/a", a, answer: .body("SECRET-A", cc: "public, private, max-age=600")), Attack.get(answer: no)],
            expect: .nowhere("SECRET")),
        Attack(
            "auth-private-quoted", "private by another spelling",
            [Attack.get("/a", answer: .body("SECRET-A", cc: "max-age=600, PRIVATE")), Attack.get(answer: .body("other"))],
            expect: .nowhere("SECRET")),
        Attack(
            "auth-private-field", "a field that is private goes to no one",
            [
                Attack.get("/a", answer: .body("x", cc: "max-age=600, private=\"X-User\"", "X-User: SECRET")),
                Attack.get(answer: .body("x")),
            ], expect: .body("x"), .nowhere("SECRET"), .asked(1...1)),
        Attack(
            "auth-no-cache-field", "nor one that must be asked for again",
            [
                Attack.get("/a", answer: .body("x", cc: "max-age=600, no-cache=\"X-User\"", "X-User: SECRET")),
                Attack.get(answer: .body("x")),
            ], expect: .body("x"), .nowhere("SECRET")),
        Attack(
            "cookie-partition", "cookies part clients too",
            [
                Attack.get("/a", "Cookie: sid=A", answer: .body("SECRET-A", cc: "max-age=600")),
                Attack.get("/a", "Cookie: sid=B", answer: .body("B")),
            ],
            expect: .body("B")),
        Attack(
            "cookie-none", "and those that bring none",
            [Attack.get("/a", "Cookie: sid=A", answer: .body("SECRET-A", cc: "max-age=600")), Attack.get(answer: .body("B"))],
            expect: .body("B")),
        Attack(
            "api-key-partition", "so does an API key",
            [
                Attack.get("/a", "X-Api-Key: A", answer: .body("SECRET-A", cc: "max-age=600")),
                Attack.get("/a", "X-Api-Key: B", answer: .body("B")),
            ],
            expect: .body("B")),
        Attack(
            "set-cookie-replay", "nobody gets another's cookie",
            [Attack.get(answer: .body("x", "Set-Cookie: sid=A")), Attack.get(answer: .body("x"))], expect: .nowhere("sid=A"),
            .noField("set-cookie")),
        Attack(
            "set-cookie-offline", "offline neither",
            [Attack.get(answer: .body("x", "Set-Cookie: sid=A")), Attack.get(answer: .down)], expect: .nowhere("sid=A"),
            .noField("set-cookie")),
        Attack(
            "set-cookie-404", "nor with an error",
            [Attack.get(answer: .body("x", status: 404, "Set-Cookie: sid=A")), Attack.get(answer: .body("x"))],
            expect: .nowhere("sid=A"), .noField("set-cookie")),
        Attack(
            "set-cookie-on-304", "nor by a validation",
            [
                Attack.get(answer: .body("x", cc: "max-age=0", "ETag: \"a\"")),
                Attack.get("/a", answer: .raw("", status: 304, "ETag: \"a\"", "Set-Cookie: sid=A")), Attack.get(answer: .body("x")),
            ], expect: .body("x"), .nowhere("sid=A"), .noField("set-cookie")),
        Attack(
            "no-store-request", "RFC 9111 §5.2.1.5",
            [Attack.get("/a", "Cache-Control: no-store", answer: .body("SECRET")), Attack.get(answer: .down)],
            expect: .status(502, 504), .nowhere("SECRET"), .notOnDisk("SECRET")),
        Attack(
            "no-store-response", "RFC 9111 §5.2.2.5",
            [Attack.get(answer: .body("SECRET", cc: "no-store")), Attack.get(answer: .down)], expect: .nowhere("SECRET"),
            .notOnDisk("SECRET")),
        Attack(
            "credentials-on-disk", "what partitions is an HMAC",
            [Attack.get("/a", "Authorization: Bearer PLANTED-TOKEN", answer: .body("x", cc: "private, max-age=600"))],
            expect: .body("x"), .notOnDisk("PLANTED-TOKEN")),
        Attack(
            "www-auth-401-cached", "a stored 401 locks nobody out",
            [
                Attack.get(answer: .body("no", status: 401, cc: "max-age=600")),
                Attack.get("/a", a, answer: .body("ok", cc: nil)),
            ], expect: .body("ok")),
        Attack(
            "407-cached", "nor a 407",
            [Attack.get(answer: .body("no", status: 407, "Proxy-Authenticate: Basic")), Attack.get(answer: .body("ok"))],
            expect: .body("ok")),
        Attack(
            "403-of-one-identity", "a refusal is its reader's own",
            [Attack.get("/a", a, answer: .body("no", status: 403, cc: "max-age=600")), Attack.get("/a", b, answer: .body("ok"))],
            expect: .body("ok")),
    ]

    @Test(arguments: attacks, AttackedServer.policies)
    func nobodyReadsWhatIsAnothers(_ attack: Attack, _ policy: String) async throws {
        try await AttackedServer.play(attack, policy: policy)
    }

    /// A first read without a token does not determine the response for clients with a token.
    @Test func aTokenIsNotAnsweredWithWhatHasNone() async throws {
        try await AttackedServer.with(policy: "offline-first") { attacked in
            _ = try await attacked.send(Attack.get(answer: .body("LOG IN", cc: "max-age=600")))
            let mine = try await attacked.send(Attack.get("/a", Self.a, answer: .body("SECRET-A", cc: "max-age=600")))
            let others = try await attacked.send(Attack.get(answer: .body("asked")))
            let again = try await attacked.send(Attack.get("/a", Self.a, answer: .down))
            #expect(mine.text == "SECRET-A" && others.text == "LOG IN" && again.text == "SECRET-A")
        }
    }
}
