// Refused writes of one client do not delay the writes of another (docs/outbox.md#principals; SECURITY.md).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(3)), .serialized) struct PrincipalTests {
    private static let upstream: JSONValue = [
        "idempotency": ["honoured": "yes"], "resources": [["collection": "/v1/notes", "item": "/v1/notes/{id}"]],
    ]

    /// A client that may not write to the API.
    enum Intruder: String, CaseIterable {
        case nobody, badToken, cookie, forbidden, invalid

        var fields: [String] {
            switch self {
            case .nobody: []
            case .badToken: ["Authorization: Bearer bad"]
            case .cookie: ["Cookie: session=stolen"]
            case .forbidden: ["Authorization: Bearer reader"]
            case .invalid: ["Authorization: Bearer clumsy"]
            }
        }
    }

    /// Ada has all rights, the reader may only read, and the clumsy client's writes are always invalid.
    private static let play: PlayedSite.Play = { asked in
        switch (asked.method, asked["authorization"]) {
        case (_, "Bearer ada"), ("GET", "Bearer reader"), ("GET", "Bearer clumsy"): .text("ok", "Cache-Control: no-store")
        case (_, "Bearer reader"): .text("no", status: 403)
        case (_, "Bearer clumsy"): .text("no", status: 422)
        default: .text("who?", status: 401, "WWW-Authenticate: Bearer")
        }
    }

    private static let ada = ["Authorization: Bearer ada", "Content-Type: application/json"]

    /// Queues a write, online or offline.
    private func queue(_ world: PlayedWorld, _ fields: [String], _ body: String) async throws -> String {
        let reply = try await world.send(
            "PUT", "/v1/notes/1", fields: fields + ["Content-Type: application/json", "Prefer: respond-async"], body: body)
        #expect(reply.status == 202, "\(reply.status) \(reply.text)")
        return try #require(reply["rockpool-operation"])
    }

    /// Online: the intruder's write has been refused, and Ada writes, live and through the outbox.
    @Test(arguments: Intruder.allCases, [false, true])
    func aRefusedWriteHoldsNobodyElse(_ intruder: Intruder, _ isKnown: Bool) async throws {
        try await PlayedWorld.with(upstream: Self.upstream, Self.play) { world in
            if isKnown { try await #expect(world.get("/v1/me", Self.ada).status == 200) }
            if intruder == .forbidden || intruder == .invalid { _ = try await world.get("/v1/me", intruder.fields) }
            let refused = try await queue(world, intruder.fields, #"{"title":"mine"}"#)
            try await eventually("it is refused") {
                let state = try await world.server.get("/v1/operations/\(refused)").json?["state"]?.string
                return state == "dead" || state == "parked"
            }
            let began = ContinuousClock.now
            try await #expect(world.send("PUT", "/v1/notes/1", fields: Self.ada, body: #"{"title":"hers"}"#).status == 200)
            let queued = try await queue(world, ["Authorization: Bearer ada"], #"{"title":"hers again"}"#)
            _ = try await world.server.operation(queued, reaching: "delivered")
            #expect(ContinuousClock.now - began < .seconds(5))
        }
    }

    /// Offline: both clients have pending writes, in either order; once the API is back, Ada's is delivered.
    @Test(arguments: Intruder.allCases, [false, true])
    func ofTwoThatWaitedTheRightfulOneIsDelivered(_ intruder: Intruder, _ adaIsFirst: Bool) async throws {
        try await PlayedWorld.with(upstream: Self.upstream, Self.play) { world in
            try await world.turn("offline")
            var hers = ""
            if adaIsFirst { hers = try await queue(world, ["Authorization: Bearer ada"], #"{"title":"hers"}"#) }
            _ = try await queue(world, intruder.fields, #"{"title":"mine"}"#)
            _ = try await queue(world, intruder.fields, #"{"title":"mine again"}"#)
            if !adaIsFirst { hers = try await queue(world, ["Authorization: Bearer ada"], #"{"title":"hers"}"#) }
            try await world.turn("auto")
            let began = ContinuousClock.now
            _ = try await world.server.operation(hers, reaching: "delivered")
            #expect(ContinuousClock.now - began < .seconds(5))
        }
    }

    /// A write without a principal can never get a credential, so it is dead after the refusal.
    @Test func nobodysRefusedWriteIsDead() async throws {
        try await PlayedWorld.with(upstream: Self.upstream, Self.play) { world in
            let id = try await queue(world, [], #"{"title":"mine"}"#)
            _ = try await world.server.operation(id, reaching: "dead")
        }
    }

    // MARK: cookies beside the one that names the client

    /// With `cookie:sid` a queued write has the cookies that it came with: another may name a tenant, or belong to a token in its body. Once
    /// they are refused, it has the newest.
    @Test(arguments: [200, 401, 403]) func aQueuedWriteKeepsItsOwnCookies(status: Int) async throws {
        let play: PlayedSite.Play = { asked in
            .text("", status: asked.method == "POST" && asked["cookie"]?.contains("org=2") == true ? status : 200)
        }
        try await PlayedWorld.with(upstream: ["identity": "cookie:sid"], play) { world in
            for org in [1, 2, 1] { try await #expect(world.get("/page", ["Cookie: sid=ann; org=\(org)"]).status == 200) }
            try await #expect(world.server.change("PUT", "/v1/network", ["mode": "offline", "upstream": "notes"]).status < 300)
            var ids: [String] = []
            for org in [2, 1, 2] {
                let reply = try await world.send("POST", "/note/\(ids.count)", fields: ["Cookie: sid=ann; org=\(org)"], body: "for \(org)")
                ids.append(try #require(reply["rockpool-operation"], "\(reply.status)"))
            }
            try await #expect(world.server.change("PUT", "/v1/network", ["mode": "auto", "upstream": "notes"]).status < 300)
            for id in ids { _ = try await world.server.operation(id, reaching: "delivered") }
            let sent = world.site.asked.filter { $0.method == "POST" }.map { "\($0.body) in \($0["cookie"] ?? "")" }
            let (two, one) = ("for 2 in sid=ann; org=2", "for 1 in sid=ann; org=1")
            #expect(sent.filter { $0 == one }.count == 1 && sent.contains(two), "\(sent)")
            #expect(sent.contains("for 2 in sid=ann; org=1") == (status != 200), "\(sent)")
        }
    }

    // MARK: users behind one Authorization

    private static let gate = "Authorization: Basic c2l0ZTpwYXNz"

    /// A site with one password for all, whose users log in by cookie: each is answered by name, and varies by it.
    private static let site: PlayedSite.Play = { asked in
        .text("for \(asked["cookie"] ?? "nobody")", "Vary: Cookie", "Cache-Control: max-age=600")
    }

    private func fields(of user: String?) -> [String] { [Self.gate] + (user.map { ["Cookie: sid=\($0)"] } ?? []) }

    /// The same where the site declares its pages as private, as Rails does, in place of `Vary`.
    @Test(arguments: ["private, max-age=600", "max-age=0, private, must-revalidate"]) func privatePagesAreNotMixed(
        _ directives: String
    ) async throws {
        let play: PlayedSite.Play = {
            .text("for \($0["cookie"] ?? "nobody")", "Cache-Control: \(directives)", "ETag: \"\($0["cookie"] ?? "")\"")
        }
        try await PlayedWorld.with(play) { world in
            for user in ["ann", "bob", nil, "ann"] {
                try await #expect(world.get("/page", fields(of: user)).text == "for \(user.map { "sid=\($0)" } ?? "nobody")")
            }
            try await #expect(world.server.change("PUT", "/v1/network", ["mode": "offline", "upstream": "notes"]).status < 300)
            for user in ["ann", "bob", nil] {
                let text = try await world.get("/page", fields(of: user)).text
                #expect(
                    text.contains("for ") ? text == "for \(user.map { "sid=\($0)" } ?? "nobody")" : directives.contains("revalidate"),
                    "\(text)")
            }
            try await #expect(!world.get("/page", fields(of: "eve")).text.contains("for "))
        }
    }

    /// Offline each user reads what they read online, and a queued write is sent with the cookie that it came with.
    @Test(arguments: [false, true]) func usersBehindOnePasswordAreNotMixed(hasRestarted: Bool) async throws {
        try await PlayedWorld.with(Self.site) { world in
            for user in ["ann", "bob"] { try await #expect(world.get("/page", fields(of: user)).text == "for sid=\(user)") }
            try await #expect(world.server.change("PUT", "/v1/network", ["mode": "offline", "upstream": "notes"]).status < 300)
            for user in ["ann", "bob", "ann"] { try await #expect(world.get("/page", fields(of: user)).text == "for sid=\(user)") }
            for stranger in [nil, "eve"] {
                let reply = try await world.get("/page", fields(of: stranger))
                #expect(reply.status == 504 && !reply.text.contains("sid="), "\(reply.text)")
            }
            var ids: [String] = []
            for user in ["ann", "bob", "ann"] {
                let reply = try await world.send("POST", "/pay", fields: fields(of: user), body: "from \(user)")
                ids.append(try #require(reply["rockpool-operation"], "\(reply.status)"))
            }
            // The last to be seen is bob.
            _ = try await world.get("/page", fields(of: "bob"))
            if hasRestarted {
                try await world.server.kill()
                try await world.server.start()
                try await #expect(world.get("/page", fields(of: "bob")).text == "for sid=bob")
            }
            try await #expect(world.server.change("PUT", "/v1/network", ["mode": "auto", "upstream": "notes"]).status < 300)
            _ = try await world.get("/other", fields(of: "bob"))
            for id in ids { _ = try await world.server.operation(id, reaching: "delivered") }
            let sent = world.site.asked.filter { $0.method == "POST" }
            #expect(sent.count == 3 && sent.allSatisfy { $0["authorization"] == "Basic c2l0ZTpwYXNz" && $0["rockpool-credential"] == nil })
            for write in sent {
                // After a restart the cookies are forgotten: then none is sent, rather than another's.
                #expect(write["cookie"] == (hasRestarted ? nil : "sid=\(write.body.dropFirst(5))"), "\(write)")
            }
        }
    }
}
