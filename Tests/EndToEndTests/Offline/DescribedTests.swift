// An API is known by its own description: one that it names and a client has read, or one that the operator names
// (docs/outbox.md#descriptions).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(5))) struct DescribedTests {
    private static let type = "Content-Type: application/json"
    private static let item = ##"{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Note"}}}}"##
    private static let document = #"""
        {
          "openapi": "3.1.0",
          "paths": {
            "/notes": { "get": {}, "post": { "responses": { "201": {} } } },
            "/notes/{id}": { "get": { "responses": { "200": \#(item) } } }
          },
          "components": { "schemas": { "Note": { "properties": { "id": { "type": "integer" } } } } }
        }
        """#
    private static let play: PlayedSite.Play = { asked in
        switch "\(asked.method) \(asked.path)" {
        case "GET /notes":
            .text(#"[{"id":1,"text":"a"},{"id":2,"text":"b"}]"#, type, #"Link: </openapi.json>; rel="service-desc""#)
        case "GET /openapi.json": .text(document, type)
        default: .text("{}", status: 404, type)
        }
    }

    /// Waits until the notes are known, and checks that they are shown away with what was written.
    private func areKnown(_ world: PlayedWorld) async throws {
        let known = try await eventualValue("the notes") {
            try await world.server.get("/v1/learned").json?["items"]?.array?.first { $0["state"] == "learned" }
        }
        #expect(known["collection"] == "/notes" && known["resource"]?["item"] == "/notes/{id}", "\(known)")
        #expect(known["reason"]?.string?.contains("description") == true, "\(known)")
        try await world.turn("offline")
        _ = try await world.send("POST", "/notes", fields: [Self.type], body: #"{"text":"away"}"#)
        _ = try await world.send("PATCH", "/notes/2", fields: [Self.type], body: #"{"text":"edited"}"#)
        let list = try await world.get("/notes").json?.array ?? []
        #expect(list.map { $0["text"]?.string } == ["a", "edited", "away"] && list.allSatisfy { $0["id"]?.integer != nil }, "\(list)")
    }

    @Test func oneThatTheAPINamesCountsOnceAClientHasReadIt() async throws {
        try await PlayedWorld.with(upstream: ["resources": "learned"], Self.play) { world in
            try await #expect(world.get("/notes").status == 200)
            try await world.stored("/notes")
            #expect(world.site.count("/openapi.json") == 0, "nothing is asked of an API that no client asks")
            try await #expect(world.get("/openapi.json").status == 200)
            try await areKnown(world)
            #expect(world.site.count("/openapi.json") == 1)
        }
    }

    @Test func oneThatTheOperatorNamesIsFetched() async throws {
        try await PlayedWorld.with(upstream: ["resources": "learned", "learn": ["description": "/openapi.json"]], Self.play) { world in
            try await eventually("the description is asked for") { world.site.count("/openapi.json") == 1 }
            try await #expect(world.get("/notes").status == 200)
            try await areKnown(world)
            #expect(world.site.count("/openapi.json") == 1)
        }
    }
}
