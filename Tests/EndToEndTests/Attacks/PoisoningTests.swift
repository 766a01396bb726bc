// Cache poisoning: one client must not affect the stored responses for others by unkeyed fields, inexact keys or deceptive names
// (docs/security-model.md#whose-response; Kettle 2018, 2020, 2024; Gil 2017).
import RockpoolTesting
import Testing

@Suite(.serialized) struct PoisoningTests {
    static let unkeyed = [
        "X-Forwarded-Host: evil.test", "X-Forwarded-Scheme: nothttps", "X-Forwarded-Proto: evil", "X-Forwarded-Port: 666",
        "X-Forwarded-Server: evil.test", "X-Forwarded-Prefix: /evil", "X-Forwarded-For: evil", "X-Forwarded-Path: /evil",
        "X-Forwarded-Uri: /evil", "X-Host: evil.test", "X-HTTP-Host-Override: evil.test", "X-Original-URL: /evil", "X-Original-Host: evil",
        "X-Rewrite-URL: /evil", "X-HTTP-Method-Override: EVIL", "X-HTTP-Method: EVIL", "X-Method-Override: EVIL",
        "Forwarded: host=evil.test",
        "True-Client-IP: evil", "X-Real-IP: evil", "X-Client-IP: evil", "Client-IP: evil", "CF-Connecting-IP: evil", "X-URL-Scheme: evil",
        "Origin: https://evil.test", "Origin: null", "Accept: text/evil",
    ]

    @Test(arguments: unkeyed, AttackedServer.policies)
    func whatAFieldWithoutAKeyBringsIsNobodyElses(_ field: String, _ policy: String) async throws {
        let (name, value) = (String(field.prefix { $0 != ":" }), String(field.drop { $0 != ":" }.dropFirst(2)))
        let steps = [Attack.get("/a", field, answer: .reflection(of: name)), Attack.get(answer: .body("good", "Content-Type: text/plain"))]
        try await AttackedServer.play(
            Attack(field, "an origin that reflects it and says no Vary", steps, expect: .nowhere(value), .body("good")), policy: policy)
    }

    static let keys = [
        Attack(
            "key-query-order", "a query is not sorted",
            [Attack.get("/a?x=1&y=2", answer: .body("1")), Attack.get("/a?y=2&x=1", answer: .body("2"))], expect: .body("2")),
        Attack(
            "key-query-duplicates", "nor its parameters folded",
            [Attack.get("/a?x=1&x=2", answer: .body("1")), Attack.get("/a?x=2", answer: .body("2"))], expect: .body("2")),
        Attack(
            "key-empty-query", "an empty query is one",
            [Attack.get("/a?", answer: .body("1")), Attack.get("/a", answer: .body("2"))], expect: .body("2")),
        Attack(
            "key-utm", "no parameter is dropped",
            [Attack.get("/a?utm_source=x", answer: .body("1")), Attack.get("/a", answer: .body("2"))],
            expect: .body("2")),
        Attack(
            "key-path-case", "a path is case-sensitive", [Attack.get("/A", answer: .body("1")), Attack.get("/a", answer: .body("2"))],
            expect: .body("2")),
        Attack(
            "key-pct-case", "nothing is decoded", [Attack.get("/%7Ea", answer: .body("1")), Attack.get("/~a", answer: .body("2"))],
            expect: .body("2")),
        Attack(
            "key-pct-slash", "nor a slash", [Attack.get("/a%2fb", answer: .body("1")), Attack.get("/a/b", answer: .body("2"))],
            expect: .body("2")),
        Attack(
            "key-double-slash", "nor are slashes merged", [Attack.get("//a", answer: .body("1")), Attack.get("/a", answer: .body("2"))],
            expect: .body("2")),
        Attack(
            "key-dot-segments", "nor dots removed", [Attack.get("/b/../a", answer: .body("1")), Attack.get("/a", answer: .body("2"))],
            expect: .body("2")),
        Attack(
            "key-plus-space", "+ is no %20", [Attack.get("/a?q=+", answer: .body("1")), Attack.get("/a?q=%20", answer: .body("2"))],
            expect: .body("2")),
        Attack(
            "key-semicolon-param", "parameter cloaking",
            [Attack.get("/a?cb=1&utm=2;cb=evil", answer: .body("evil")), Attack.get("/a?cb=1&utm=2", answer: .body("good"))],
            expect: .body("good")),
        Attack(
            "key-delimiter", "no delimiter of the key's can be forged",
            [Attack.get("/a%0a?x", answer: .body("1")), Attack.get("/a", answer: .body("2"))], expect: .body("2")),
        Attack(
            "key-long-truncation", "the whole key counts",
            [
                Attack.get("/" + String(repeating: "a", count: 8000) + "1", answer: .body("1")),
                Attack.get("/" + String(repeating: "a", count: 8000) + "2", answer: .body("2")),
            ], expect: .body("2")),
        Attack(
            "key-method-head-get", "HEAD creates no body",
            [.init(method: "HEAD", answer: .body("evil")), Attack.get(answer: .body("full"))], expect: .body("full")),
        Attack(
            "key-method-post-get", "the answer to POST is no answer to GET",
            [.init(method: "POST", body: "x", answer: .body("evil")), Attack.get(answer: .body("good"))], expect: .body("good")),
        Attack(
            "key-method-options-get", "nor that to OPTIONS",
            [.init(method: "OPTIONS", answer: .body("evil")), Attack.get(answer: .body("good"))], expect: .body("good")),
        Attack(
            "fat-get", "a GET with a body (Kettle 2020)",
            [.init(body: "p=evil", answer: .body("evil")), Attack.get(answer: .body("good"))], expect: .body("good")),
        Attack(
            "fat-get-hit", "and it is not answered with what others got",
            [Attack.get(answer: .body("shared")), .init(body: "p=1", answer: .body("mine"))], expect: .body("mine")),
        Attack(
            "method-override-hit", "another method in disguise is not answered from the store",
            [Attack.get(answer: .body("shared")), Attack.get("/a", "X-HTTP-Method-Override: DELETE", answer: .body("deleted"))],
            expect: .body("deleted")),
        Attack(
            "no-vary-search-of-another-path", "a rule about queries holds for its own path",
            [
                Attack.get("/b?x=1", answer: .body("1", "No-Vary-Search: params")), Attack.get("/a?x=1", answer: .body("1")),
                Attack.get("/a?x=2", answer: .body("2")),
            ], expect: .body("2")),
    ]

    @Test(arguments: keys, AttackedServer.policies)
    func aKeyIsTheExactBytesSentUpstream(_ attack: Attack, _ policy: String) async throws {
        try await AttackedServer.play(attack, policy: policy)
    }

    @Test(arguments: AttackedServer.policies) func theCaseOfAHostMakesNoDifference(_ policy: String) async throws {
        try await AttackedServer.with(policy: policy) { attacked in
            _ = try await attacked.send(Attack.get("/a", "Host: LOCALHOST", answer: .body("1")))
            let second = try await attacked.send(Attack.get("/a", "Host: localhost", answer: .body("2")))
            #expect(second.text == "1" && attacked.asked("/a") == 1)
        }
    }

    static let deceptions =
        [
            "/account/x.css", "/account%2fx.css", "/account%00.css", "/account%23x.css", "/account%3fx.css", "/account;x.css",
            "/account%0ax.js",
        ]
        + ["/account/x.jpg", "/account/..%2fstatic/x.png", "/static/..%2faccount.js", "/account.css", "/account/x.avif?y"]

    @Test(arguments: deceptions, AttackedServer.policies)
    func aNameThatDeceivesMakesNobodysPagePublic(_ path: String, _ policy: String) async throws {
        for (fields, cc) in [
            (["Cookie: sid=A"], nil), (["Authorization: Bearer A"], nil), (["Cookie: sid=A"], "public, max-age=600"),
            (["Authorization: Bearer A"], "max-age=600"), (["Cookie: sid=A"], "max-age=600"),
        ] as [([String], String?)] {
            let secret = Answer.body("SECRET-A", cc: cc, "Content-Type: text/html", "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT")
            let steps = [
                Attack.Step(path: path, fields: fields, answer: secret),
                Attack.get(path, answer: .body("LOGIN", cc: nil, "Content-Type: text/html")),
            ]
            try await AttackedServer.play(
                Attack(path, "\(fields) \(cc ?? "")", steps, expect: .body("LOGIN"), .nowhere("SECRET")), policy: policy)
        }
    }
}
