// Copies that vary by a credential: while the upstream is away they are selected by their partition (docs/caching.md#vary).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(1))) struct OwnVariantTests {
    /// A site that shows a message once, by a cookie that the page deletes, as Django does.
    private static func page(_ asked: PlayedSite.Asked) -> PlayedSite.Said {
        if asked.method == "POST" { return .text("", status: 302, "Location: /notes", "Set-Cookie: messages=added; Path=/") }
        let cookies = asked["cookie"] ?? ""
        let notes = cookies.contains("messages=") ? "first, second; was added" : "first"
        return .text(notes, "Content-Type: text/html", "Cache-Control: private, no-cache, no-store", "Vary: Cookie")
    }

    /// Session guarantees: read your writes, monotonic reads.
    @Test func aPageThatVariesByAnotherCookieIsReadOffline() async throws {
        let upstream: JSONValue = ["identity": "cookie:sessionid", "routes": [["match": "GET /notes", "store": "always"]]]
        try await PlayedWorld.with(upstream: upstream, { Self.page($0) }) { world in
            let session = "Cookie: csrftoken=c; sessionid=anna"
            try await #expect(world.get("/notes", [session]).text == "first")
            try await #expect(world.send("POST", "/notes/add", fields: [session], body: "name=second").status == 302)
            try await #expect(world.get("/notes", [session + "; messages=added"]).text == "first, second; was added")
            try await world.stored("/notes")
            try await world.turn("offline")
            let again = try await world.get("/notes", [session])
            #expect(again.status == 200 && again.text.hasPrefix("first, second"), "\(again.status) \(again.text)")
            for other in ["Cookie: csrftoken=c; sessionid=bert", "Cookie: csrftoken=c", "Accept: text/html"] {
                try await #expect(world.get("/notes", [other]).status == 504, "\(other)")
            }
            try await world.turn("auto")
            try await #expect(world.get("/notes", [session]).text == "first", "online the cookie selects")
        }
    }

    /// A framework that keeps the session in a cookie, with another value in each answer.
    private static func session(_ asked: PlayedSite.Asked) -> PlayedSite.Said {
        let number = UInt64.random(in: .min ... .max)
        let user = asked["cookie"]?.split(separator: "=").last?.prefix { $0 != "." } ?? (asked.body.isEmpty ? "nobody" : asked.body[...])
        let cookie = "Set-Cookie: session=\(user).\(number).\(String(repeating: "x", count: 20)); Path=/; HttpOnly"
        let answer = "\(user) \(asked.path)"
        return .text(answer, status: asked.method == "POST" ? 303 : 200, cookie, "Content-Type: text/html", "Vary: Cookie", "Location: /")
    }

    /// Session guarantee: read your writes, monotonic reads; over a restart too.
    @Test(arguments: ["auto", "cookie:session"]) func aSessionGoesOnUnderRenewedCookies(_ identity: String) async throws {
        try await PlayedWorld.with(upstream: ["identity": .string(identity)], { Self.session($0) }) { world in
            var cookie = ""
            let visit = { (method: String, path: String, body: String?) in
                // A page proves its session only if it was asked for.
                let fields = ["Accept: text/html"] + (cookie.isEmpty ? [] : ["Cookie: \(cookie)"])
                let answer = try await world.send(method, path, fields: fields, body: body)
                if let set = answer["set-cookie"] { cookie = String(set.prefix { $0 != ";" }) }
                return answer.text
            }
            _ = try await visit("POST", "/login", "ann")
            for path in ["/a", "/b", "/c", "/b"] { try await #expect(visit("GET", path, nil) == "ann \(path)") }
            try await world.stored("/c")
            let anns = cookie
            cookie = ""
            _ = try await visit("POST", "/login", "bob")
            try await #expect(visit("GET", "/a", nil) == "bob /a")
            try await world.turn("offline")
            try await #expect(world.server.stop() == .exit(0))
            try await world.server.start()
            try await #expect(visit("GET", "/a", nil) == "bob /a")
            try await #expect(world.get("/b", ["Cookie: \(cookie)"]).status == 504)
            for path in ["/a", "/b", "/c"] { try await #expect(world.get(path, ["Cookie: \(anns)"]).text == "ann \(path)") }
            try await #expect(world.get("/a").status == 504)
        }
    }

    private static func token(_ id: Int, of subject: String) -> String { "Authorization: " + Token.bearer(subject, id: id) }

    /// A renewed token of the same subject reads what the earlier one has read, and a token of another subject does not.
    @Test func aCopyThatVariesByTheTokenIsReadWithTheNextOne() async throws {
        let play: PlayedSite.Play = { asked in
            guard asked["authorization"] != nil else { return .text("who?", status: 401) }
            return .text(asked.path, "Cache-Control: private, max-age=60", "Vary: Authorization")
        }
        try await PlayedWorld.with(play) { world in
            try await #expect(world.get("/notes", [Self.token(1, of: "anna")]).status == 200)
            try await #expect(world.get("/other", [Self.token(2, of: "anna")]).status == 200)
            try await #expect(world.get("/other", [Self.token(1, of: "bert")]).status == 200)
            try await world.stored("/notes")
            try await world.turn("offline")
            try await #expect(world.get("/notes", [Self.token(2, of: "anna")]).status == 200)
            try await #expect(world.get("/notes", [Self.token(1, of: "bert")]).status == 504)
            try await #expect(world.get("/notes", [Self.token(3, of: "anna")]).status == 504, "not accepted by the upstream yet")
        }
    }

    /// A cookie of analytics has a new value in each request; a session cookie names the user.
    @Test func cookiesThatIdentifyNoUserDoNotHideACopy() async throws {
        let play: PlayedSite.Play = { asked in
            let isAnna = asked["cookie"]?.contains("sid=anna") == true
            return .text(isAnna ? "anna's" : "common", "Cache-Control: \(isAnna ? "private" : "max-age=60")", "Vary: Cookie")
        }
        try await PlayedWorld.with(play) { world in
            try await #expect(world.get("/mine", ["Cookie: _ga=1; sid=anna; AWSALB=a+b=="]).text == "anna's")
            try await #expect(world.get("/all", ["Cookie: _ga=1; _ga_X=GS1.1.7"]).text == "common")
            try await world.stored("/mine")
            try await world.stored("/all")
            try await world.turn("offline")
            for cookies in ["_ga=2; sid=anna", "sid=anna; AWSALB=c+d=="] {
                try await #expect(world.get("/mine", ["Cookie: " + cookies]).text == "anna's", "\(cookies)")
            }
            try await #expect(world.get("/all", ["Cookie: _ga=9"]).text == "common")
            try await #expect(world.get("/all").text == "common")
            for cookies in ["_ga=1; sid=bert", "_ga=1"] {
                try await #expect(world.get("/mine", ["Cookie: " + cookies]).status == 504, "\(cookies)")
            }
        }
    }

    /// An API that answers by session and does not declare it in `Vary`.
    @Test func anOwnCopyComesBeforeANewerSharedOne() async throws {
        let play: PlayedSite.Play = { asked in
            .text(asked["cookie"] == nil ? "sign in" : "welcome", "Content-Type: text/html", "Last-Modified: Mon, 02 Nov 2026 10:00:00 GMT")
        }
        try await PlayedWorld.with(play) { world in
            try await #expect(world.get("/home", ["Cookie: sid=anna"]).text == "welcome")
            try await world.stored("/home")
            try await Task.sleep(for: .milliseconds(1100))
            try await #expect(world.get("/home").text == "sign in")
            try await eventually("both are stored") {
                try await world.server.get("/v1/cache?prefix=\(world.url("/home"))").json?["items"]?.array?.count == 2
            }
            try await #expect(world.get("/home", ["Cookie: sid=anna"]).text == "welcome")
            try await world.turn("offline")
            try await #expect(world.get("/home", ["Cookie: sid=anna"]).text == "welcome")
            try await #expect(world.get("/home").text == "sign in")
        }
    }
}
