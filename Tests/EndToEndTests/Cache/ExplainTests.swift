// `explain` reports the last event of a URL's response: stored, not stored with the reason, or removed (docs/reference/admin-api.md#explain
// `/v1/cache/explain`).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(2)), .serialized) struct ExplainTests {
    private static func answer(_ asked: PlayedSite.Asked) -> PlayedSite.Said {
        switch asked.path {
        case "/secret": .text("secret", "Cache-Control: no-store")
        case "/large": .text(String(repeating: "x", count: 5000), "Cache-Control: max-age=600")
        default: .text("plain", "Cache-Control: max-age=600")
        }
    }

    private func with(_ body: (PlayedWorld) async throws -> Void) async throws {
        try await PlayedWorld.with(
            upstream: ["routes": [["match": "/large", "category": "assets"]]], categories: ["assets": ["max_object": "1 KiB"]],
            { Self.answer($0) }
        ) { world in try await body(world) }
    }

    /// Returns the last event of a path; null when there was none.
    private func last(_ path: String, _ world: PlayedWorld) async throws -> JSONValue? {
        try await world.server.get("/v1/cache/explain?url=\(world.url(path))").json?["last"]
    }

    /// Waits until the last event of a path is `event`, and returns it.
    private func last(_ path: String, reaching event: String, _ world: PlayedWorld) async throws -> JSONValue {
        let told: JSONValue = try await eventualValue("\(path) is \(event)") {
            let told = try await last(path, world)
            return told?["event"]?.string == event ? told : nil
        }
        let at = told["at"]?.string ?? ""
        let isTime = at.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/) != nil
        #expect(isTime, "\(at)")
        return told
    }

    /// `min_uses`: what is read once takes no space.
    @Test func aResponseIsStoredFromItsThirdRequestOn() async throws {
        try await PlayedWorld.with(
            upstream: ["routes": [["match": "/rare/**", "category": "ephemeral"]]], categories: ["ephemeral": ["min_uses": 3]],
            { Self.answer($0) }
        ) { world in
            for _ in 1...2 {
                try await #expect(world.get("/rare/a").status == 200)
                try await #expect(last("/rare/a", reaching: "not-stored", world)["reason"] == "min-uses")
            }
            try await #expect(world.get("/rare/a").status == 200)
            _ = try await last("/rare/a", reaching: "stored", world)
        }
    }

    @Test func nothingIsToldOfWhatWasNeverSeen() async throws {
        try await with { world in
            try await #expect(last("/never", world)?.isNull == true)
            try await #expect(world.get("/plain").status == 200)
            _ = try await last("/plain", reaching: "stored", world)
            try await #expect(last("/never", world)?.isNull == true)
        }
    }

    @Test(arguments: [("/secret", "no-store"), ("/large", "too-large")])
    func whyAnAnswerWasNotStored(_ path: String, _ reason: String) async throws {
        try await with { world in
            try await #expect(world.get(path).status == 200)
            let told = try await last(path, reaching: "not-stored", world)
            #expect(told["reason"]?.string == reason, "\(told)")
            let shown = try await world.server.command("cache", "explain", world.url(path))
            let lines = shown.output.split(separator: "\n")
            #expect(shown.status == 0 && lines.contains { $0.contains(reason) }, "\(shown.output) \(shown.errors)")
            let json = try await world.server.command("cache", "explain", world.url(path), "--format", "json")
            #expect(try JSONValue.parse(Array(json.output.utf8))["last"]?["reason"]?.string == reason, "\(json.output)")
        }
    }

    @Test func aPurgeIsTold() async throws {
        try await with { world in
            try await #expect(world.get("/plain").status == 200)
            _ = try await last("/plain", reaching: "stored", world)
            try await world.stored("/plain")
            try await #expect(world.server.change("DELETE", "/v1/cache?url=\(world.url("/plain"))").status == 200)
            _ = try await last("/plain", reaching: "purged", world)
            try await #expect(world.get("/plain").status == 200)
            _ = try await last("/plain", reaching: "stored", world)
        }
    }
}
