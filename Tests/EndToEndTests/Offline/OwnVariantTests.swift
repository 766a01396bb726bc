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

    private static func token(_ id: Int, of subject: String) -> String { "Authorization: " + Token.bearer(subject, id: id) }

    /// A renewed token of the same subject reads what the earlier one has read, and a token of another subject does not.
    @Test func aCopyThatVariesByTheTokenIsReadWithTheNextOne() async throws {
        let play: PlayedSite.Play = { asked in .text(asked.path, "Cache-Control: private, max-age=60", "Vary: Authorization") }
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
}
