// Attempts to become another client: by a forged credential, by a cookie from before its owner's login, and by what is shared on a promise
// (docs/security-model.md#proof).
import HTTPTypes
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(3)), .serialized) struct IdentityAttackTests {
    // MARK: forged credentials

    /// A claim to be anna: the true one, a newer true one, and a forged one.
    enum Claim: String, CaseIterable, Sendable {
        case token, basic

        func fields(_ id: Int) -> String {
            switch self {
            case .token: "Authorization: \(Token.bearer("anna", id: id))"
            case .basic: "Authorization: Basic \(Base64.encode(Array("anna:password\(id)".utf8)))"
            }
        }

        var first: String { fields(1) }
        var renewed: String { fields(2) }
        var forged: String { fields(666) }

        func isTrue(_ value: String?) -> Bool { [first, renewed].contains { $0.dropFirst(15) == value ?? "" } }
    }

    /// An answer that anyone gets, whatever credential comes with the request.
    struct Common: Sendable, CustomTestStringConvertible {
        var method = "GET"
        let path: String
        var fields: [String] = []
        var body: String?
        let answer: PlayedSite.Said
        var testDescription: String { "\(method) \(path)" }
    }

    private static let common: [Common] = [
        Common(method: "OPTIONS", path: "/me", answer: .text("", status: 204, "Allow: GET", "Cache-Control: no-store")),
        Common(method: "HEAD", path: "/me", answer: .text("", "Cache-Control: private")),
        Common(path: "/favicon.ico", answer: .text("icon", "Cache-Control: max-age=600")), Common(path: "/plain", answer: .text("hello")),
        Common(path: "/public", answer: .text("news", "Cache-Control: public, max-age=60")),
        Common(path: "/checked", answer: .text("news", "Cache-Control: must-revalidate, max-age=60", "Vary: Authorization")),
        Common(path: "/same", fields: ["If-None-Match: \"a\""], answer: .text("", status: 304, "Cache-Control: private", "ETag: \"a\"")),
        Common(
            method: "POST", path: "/login", fields: ["Content-Type: application/json"], body: #"{"user":"eve","secret":"her own"}"#,
            answer: .text("welcome, eve", "Cache-Control: no-store")),
        Common(method: "DELETE", path: "/basket", answer: .text("", status: 204, "Cache-Control: no-store")),
        Common(path: "/own", fields: ["Cookie: session=eves-own-valid-session"], answer: .text("eve's", "Cache-Control: private")),
        Common(path: "/own?access_token=eves", answer: .text("eve's", "Cache-Control: private")),
        Common(path: "/framework", answer: .text("news", "Cache-Control: max-age=0, private, must-revalidate")),
        Common(path: "/unmarked", answer: .text("news", "Vary: Authorization")),
        Common(path: "/page", answer: .text("<p>terms", "Content-Type: text/html", "Cache-Control: private")),
    ]

    /// The API knows anna's two credentials, and refuses every other one except where all are answered alike.
    private static func play(_ claim: Claim, _ common: Common?) -> PlayedSite.Play {
        { asked in
            if let common, asked.method == common.method, asked.path == common.path { return common.answer }
            guard claim.isTrue(asked["authorization"]) else { return .text("who?", status: 401) }
            return .text("anna's", "Cache-Control: private, max-age=600")
        }
    }

    private func queue(_ world: PlayedWorld, _ path: String, _ credential: String, _ body: String) async throws -> String {
        let reply = try await world.send("PUT", path, fields: [credential], body: body)
        return try #require(reply["rockpool-operation"], "\(reply.status) \(reply.text)")
    }

    /// A forged credential reads nothing of hers, and neither her writes nor the attacker's are sent with the other's credential.
    @Test(arguments: Claim.allCases, common) func whatAnyoneGetsProvesNothing(_ claim: Claim, _ common: Common) async throws {
        try await PlayedWorld.with(Self.play(claim, common)) { world in
            try await #expect(world.get("/me", [claim.first]).text == "anna's")
            _ = try await world.send(common.method, common.path, fields: [claim.forged] + common.fields, body: common.body)
            try await world.stored("/me")
            try await world.turn("offline")
            let stolen = try await world.get("/me", [claim.forged])
            #expect(stolen.status == 504 && !stolen.text.contains("anna"), "\(stolen.status) \(stolen.text)")
            try await #expect(world.get("/me", [claim.first]).text == "anna's")
            let forged = try await queue(world, "/notes/1", claim.forged, "forged")
            let hers = try await queue(world, "/notes/2", claim.first, "hers")
            try await world.turn("auto")
            _ = try await world.server.operation(hers, reaching: "delivered")
            _ = try await world.server.operation(forged, reaching: "parked")
            for write in world.site.asked where write.method == "PUT" {
                let own = write.body == "hers" ? claim.first : claim.forged
                #expect(write["authorization"] == String(own.dropFirst(15)), "\(write.body)")
            }
        }
    }

    /// Turned round: the forged one comes first, and the victim later.
    @Test(arguments: Claim.allCases) func whoComesFirstIsNotBelieved(_ claim: Claim) async throws {
        let common = Common(path: "/plain", answer: .text("hello"))
        try await PlayedWorld.with(Self.play(claim, common)) { world in
            try await #expect(world.get("/plain", [claim.forged]).text == "hello")
            try await #expect(world.get("/me", [claim.first]).text == "anna's")
            try await world.turn("offline")
            try await #expect(world.get("/me", [claim.forged]).status == 504)
            let hers = try await queue(world, "/notes/2", claim.first, "hers")
            try await world.turn("auto")
            _ = try await world.server.operation(hers, reaching: "delivered")
            #expect(world.site.asked.filter { $0.method == "PUT" }.allSatisfy { $0["authorization"] == String(claim.first.dropFirst(15)) })
        }
    }

    /// The API refuses everybody for a while, as one whose users' database restarts.
    @Test(arguments: Claim.allCases) func aRefusalOfAnotherTimeIsNoProof(_ claim: Claim) async throws {
        let isBroken = Switch()
        isBroken.set()
        let play: PlayedSite.Play = { asked in
            if isBroken.isOn { return .text("who?", status: 401) }
            if asked.path == "/news" { return .text("news") }
            return claim.isTrue(asked["authorization"])
                ? .text("anna's", "Cache-Control: private, max-age=600") : .text("who?", status: 401)
        }
        try await PlayedWorld.with(play) { world in
            for one in [[], [claim.first]] { try await #expect(world.get("/news", one).status == 401) }
            isBroken.set(false)
            try await #expect(world.get("/news", [claim.forged]).text == "news")
            try await #expect(world.get("/me", [claim.first]).text == "anna's")
            try await world.stored("/me")
            try await world.turn("offline")
            try await #expect(world.get("/me", [claim.forged]).status == 504)
            let forged = try await queue(world, "/notes/1", claim.forged, "forged")
            try await world.turn("auto")
            _ = try await world.server.operation(forged, reaching: "parked")
            #expect(world.site.asked.filter { $0.method == "PUT" }.allSatisfy { $0["authorization"] == String(claim.forged.dropFirst(15)) })
        }
    }

    // MARK: those who are themselves

    /// A renewed credential keeps copies and writes once it is proved: by a private answer, or where another one was refused.
    @Test(arguments: Claim.allCases, ["private, max-age=600", "max-age=600"])
    func aRenewedCredentialGoesOn(_ claim: Claim, _ directives: String) async throws {
        let isExpired = Switch()
        let play: PlayedSite.Play = { asked in
            let value = asked["authorization"] ?? ""
            let isGood = value == String(claim.renewed.dropFirst(15)) || value == String(claim.first.dropFirst(15)) && !isExpired.isOn
            return isGood ? .text("anna's", "Cache-Control: \(directives)") : .text("who?", status: 401, "WWW-Authenticate: Basic")
        }
        try await PlayedWorld.with(play) { world in
            try await #expect(world.get("/me").status == 401)
            try await #expect(world.get("/me", [claim.first]).text == "anna's")
            try await world.stored("/me")
            try await world.turn("offline")
            let id = try await queue(world, "/notes/1", claim.first, "hers")
            isExpired.set()
            try await world.turn("auto")
            _ = try await world.server.operation(id, reaching: "parked")
            try await #expect(world.get("/other", [claim.first]).status == 401)
            try await #expect(world.get("/other", [claim.renewed]).status == 200)
            _ = try await world.server.operation(id, reaching: "delivered")
            try await world.turn("offline")
            try await #expect(world.get("/me", [claim.renewed]).text == "anna's")
        }
    }

    /// What a credential has read before it was proved stays with it, and its writes are sent with it.
    @Test func anUnprovedCredentialLosesNothing() async throws {
        let play: PlayedSite.Play = { asked in
            if asked.path == "/me", asked["authorization"] == nil { return .text("who?", status: 401) }
            return .text(asked.path, "Cache-Control: \(asked.path == "/me" ? "private" : "max-age=600")")
        }
        try await PlayedWorld.with(play) { world in
            let (token, next) = (Claim.token.first, Claim.token.renewed)
            try await #expect(world.get("/early", [token]).status == 200)
            try await world.stored("/early")
            try await world.turn("offline")
            try await #expect(world.get("/early", [token]).text == "/early")
            let id = try await queue(world, "/notes/1", token, "mine")
            try await world.turn("auto")
            _ = try await world.server.operation(id, reaching: "delivered")
            for one in [token, next] { try await #expect(world.get("/me", [one]).status == 200) }
            try await world.turn("offline")
            for one in [token, next] { try await #expect(world.get("/early", [one]).text == "/early", "it went with its identity") }
        }
    }

    // MARK: cookies

    /// A site whose login by GET gives the session another cookie, and whose pages are those of the session.
    private static let site: PlayedSite.Play = { asked in
        let cookie = asked["cookie"] ?? "none"
        if asked.path == "/login" { return .text("welcome", "Set-Cookie: \(signedIn); HttpOnly; Path=/", "Cache-Control: private") }
        return .text("for \(cookie)", "Cache-Control: private, max-age=600")
    }
    private static let before = "sid=planted-by-the-attacker", signedIn = "sid=known-to-the-victim-only"

    /// The cookie from before the login reads nothing of the session after it, and writes with its own value.
    @Test(arguments: ["auto", "cookie:sid"], [false, true])
    func aCookieFromBeforeTheLoginNamesNobody(_ identity: String, hasRestarted: Bool) async throws {
        try await PlayedWorld.with(upstream: ["identity": .string(identity)], Self.site) { world in
            let (old, new) = ["Cookie: \(Self.before)"].pair(["Cookie: \(Self.signedIn)"])
            try await #expect(world.get("/mine", old).text == "for \(Self.before)")
            try await #expect(world.get("/login", old).status == 200)
            try await #expect(world.get("/account", new).text == "for \(Self.signedIn)")
            try await world.stored("/account")
            try await world.turn("offline")
            if hasRestarted {
                try await #expect(world.server.stop() == .exit(0))
                try await world.server.start()
            }
            try await #expect(world.get("/account", old).status == 504)
            try await #expect(world.get("/account", new).text == "for \(Self.signedIn)")
            let reply = try await world.send("POST", "/pay", fields: old, body: "from the attacker")
            let id = try #require(reply["rockpool-operation"], "\(reply.status)")
            try await world.turn("auto")
            _ = try await world.server.operation(id, reaching: "delivered")
            let sent = world.site.asked.filter { $0.method == "POST" }
            #expect(sent.allSatisfy { $0["cookie"] == Self.before } && !sent.isEmpty, "\(sent)")
        }
    }

    /// A write that waits since before the login is sent with the cookie that it came with.
    @Test func aWriteFromBeforeTheLoginIsNotTheUsers() async throws {
        let isBack = Switch()
        let play: PlayedSite.Play = { asked in
            asked.method == "POST" && !isBack.isOn ? .text("later", status: 503, "Retry-After: 1") : Self.site(asked)
        }
        try await PlayedWorld.with(play) { world in
            let (old, new) = ["Cookie: \(Self.before)"].pair(["Cookie: \(Self.signedIn)"])
            try await #expect(world.get("/mine", old).status == 200)
            let reply = try await world.send("POST", "/pay", fields: old + ["Prefer: respond-async"], body: "from the attacker")
            let id = try #require(reply["rockpool-operation"], "\(reply.status)")
            try await #expect(world.get("/login", old).status == 200)
            try await #expect(world.get("/account", new).status == 200)
            isBack.set()
            _ = try await world.server.operation(id, reaching: "delivered")
            let sent = world.site.asked.filter { $0.method == "POST" }
            #expect(sent.allSatisfy { $0["cookie"] == Self.before } && !sent.isEmpty, "\(sent)")
        }
    }

    // MARK: shared on a promise

    static let promises = [
        "must-revalidate, max-age=0", "must-revalidate, max-age=1", "proxy-revalidate, must-revalidate", "s-maxage=0", "s-maxage=1",
    ]

    /// RFC 9111 §3.5 permits sharing what will be validated. Away nothing is, so each identity has its own.
    @Test(arguments: promises) func whatMustBeValidatedIsNotEverybodysAway(_ directives: String) async throws {
        let play: PlayedSite.Play = { asked in
            .text("for \(asked["authorization"] ?? "nobody")", "Cache-Control: \(directives)", "ETag: \"\(asked["authorization"] ?? "")\"")
        }
        try await PlayedWorld.with(upstream: ["policy": "offline-first"], play) { world in
            let (alice, bob) = ["Authorization: Bearer alice"].pair(["Authorization: Bearer bob"])
            try await #expect(world.get("/me", alice).text == "for Bearer alice")
            try await world.stored("/me")
            if directives.hasSuffix("=1") { try await Task.sleep(for: .milliseconds(2100)) }
            try await world.turn("offline")
            try await #expect(world.get("/me", alice).text == "for Bearer alice")
            for other in [bob, []] {
                let reply = try await world.get("/me", other)
                #expect(reply.status == 504 && !reply.text.contains("alice"), "\(other) \(reply.text)")
            }
            try await world.turn("auto")
            try await #expect(world.get("/me", bob).text == "for Bearer bob")
            try await eventually("bob has his own") {
                try await world.server.get("/v1/cache?prefix=\(world.url("/me"))").json?["items"]?.array?.count == 2
            }
            try await world.turn("offline")
            try await #expect(world.get("/me", bob).text == "for Bearer bob")
            try await #expect(world.get("/me", alice).text == "for Bearer alice")
        }
    }

    /// While it is fresh by the rule that permits sharing it is everybody's, away too.
    @Test(arguments: ["s-maxage=600", "must-revalidate, max-age=600"]) func whatIsFreshIsShared(_ directives: String) async throws {
        try await PlayedWorld.with(upstream: ["policy": "offline-first"], { _ in .text("all", "Cache-Control: \(directives)") }) { world in
            try await #expect(world.get("/all", ["Authorization: Bearer alice"]).text == "all")
            try await world.stored("/all")
            try await #expect(world.get("/all", ["Authorization: Bearer bob"]).text == "all")
            try await world.turn("offline")
            try await #expect(world.get("/all", ["Authorization: Bearer bob"]).text == "all")
            #expect(world.site.count("/all") == 1)
        }
    }

    // MARK: keys of nobody

    /// Clients without a credential choose keys for each upstream.
    @Test func anIdempotencyKeyIsOfOneUpstream() async throws {
        let other = try await PlayedSite.start { _ in .text("other") }
        let upstream: JSONValue = ["name": "other", "origin": .string("http://127.0.0.1:\(other.port)")]
        try await PlayedWorld.with(others: [upstream], { _ in .text("notes") }) { world in
            try await world.turn("offline")
            let fields = ["Idempotency-Key: one", "Content-Type: text/plain"]
            let first = try await world.send("POST", "/pay", fields: fields, body: "first")
            let second = try await Curl.send(
                "POST", "http://127.0.0.1:\(other.port)/pay", proxy: world.server.proxy, fields: fields, body: "second")
            #expect(first.status == 202 && second.status == 202, "\(second.status) \(second.text)")
            #expect(first["rockpool-operation"] != second["rockpool-operation"])
            try await #expect(
                world.send("POST", "/pay", fields: fields, body: "first")["rockpool-operation"] == first["rockpool-operation"])
            try await #expect(world.send("POST", "/pay", fields: fields, body: "another").status == 422)
        }
        await other.stop()
    }
}

/// A flag of a scripted origin.
private final class Switch: Sendable {
    private let state = Mutex(false)
    var isOn: Bool { state.withLock { $0 } }
    func set(_ isOn: Bool = true) { state.withLock { $0 = isOn } }
}

extension Array {
    fileprivate func pair(_ other: Self) -> (Self, Self) { (self, other) }
}
