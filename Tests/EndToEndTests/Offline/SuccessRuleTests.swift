// Answers of 2xx that are no success, on the release binary (docs/outbox.md#no-success).
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct SuccessRuleTests {
    private static let rule: JSONValue = [
        "resources": [
            ["collection": "/v1/notes", "item": "/v1/notes/{id}", "success": ["pointer": "/success", "absent": true]]
        ]
    ]
    private static let refusal = #"{"success":false}"#

    private func refuse(_ world: World, _ status: Int, _ body: String) {
        world.api.inject {
            $0.canned = .init(status: status, fields: [.contentType: "application/json"], body: body, methods: [.put], times: 1)
        }
    }

    @Test(arguments: [(200, refusal), (207, #"{"results":[{"status":422}]}"#)])
    func aQueuedWriteThatTheAnswerRefusesIsDead(_ status: Int, _ body: String) async throws {
        try await World.with(upstream: Self.rule) { world in
            try await #expect(world.send("GET", "/v1/notes/1").status == 200)
            await world.goOffline()
            let id = try await world.queued("PUT", "/v1/notes/1", body: #"{"title":"mine"}"#)
            refuse(world, status, body)
            try await world.api.restart()
            let dead = try await world.server.operation(id, reaching: "dead")
            #expect(dead["reason"] == "rejected" && dead["result"]?["status"]?.integer == Int64(status))
            #expect(try await world.send("GET", "/v1/notes/1").json?["title"] == "first")
        }
    }

    @Test func aLiveWriteThatTheAnswerRefusesIsNotReadOffline() async throws {
        try await World.with(upstream: Self.rule) { world in
            try await #expect(world.send("GET", "/v1/notes/1").status == 200)
            refuse(world, 200, Self.refusal)
            let reply = try await world.send("PUT", "/v1/notes/1", fields: ["Content-Type: application/json"], body: #"{"title":"mine"}"#)
            #expect(reply.status == 200 && reply.text == Self.refusal)
            await world.goOffline()
            #expect(try await world.send("GET", "/v1/notes/1").json?["title"] == "first")
        }
    }

    @Test func anAnswerAboutSomethingElseIsNeverTheNote() async throws {
        try await World.with { world in
            try await #expect(world.send("GET", "/v1/notes/1").status == 200)
            refuse(world, 200, #"{"queued":"later"}"#)
            _ = try await world.send("PUT", "/v1/notes/1", fields: ["Content-Type: application/json"], body: #"{"title":"mine"}"#)
            await world.goOffline()
            let note = try await world.send("GET", "/v1/notes/1").json
            #expect(note?["queued"] == nil && note?["title"] == "mine")
        }
    }
}
