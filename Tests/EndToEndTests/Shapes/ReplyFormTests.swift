// Replies that are made here look as the API's own: status, body and media type (docs/outbox.md#optimistic-replies).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(5))) struct ReplyFormTests {
    private static let resources: JSONValue = [
        ["collection": "/hal/orders", "profile": "hal", "offline_response": "optimistic"],
        [
            "collection": "/rails/issues.json", "item": "/rails/issues/{id}.json", "items": "/issues", "envelope": "/issue",
            "offline_response": "optimistic",
        ],
    ]

    @Test func theAPIsOwnAnswersAreTheForm() async throws {
        try await ShapedWorld.with(Self.resources) { world in
            func answers() async throws -> [String] {
                var all: [String] = []
                let issue: JSONValue = ["issue": ["subject": "x"]]
                for (method, path, body) in [
                    ("POST", "/hal/orders", ["total": 9]), ("PUT", "/rails/issues/1.json", issue), ("POST", "/rails/issues.json", issue),
                    ("DELETE", "/hal/orders/1", nil),
                ] as [(String, String, JSONValue?)] {
                    let reply = try await world.send(method, path, body)
                    let type = reply["content-type"]?.prefix { $0 != ";" } ?? "none"
                    let members = reply.json?.object?.names.filter { $0 != "_links" }.sorted().joined(separator: ",") ?? ""
                    all.append("\(method) \(reply.status) \(type) \(members)")
                }
                return all
            }
            for path in ["/hal/orders", "/rails/issues/2.json"] { try await #expect(world.get(path).status == 200) }
            let online = try await answers()
            #expect(
                online.first == "POST 201 application/hal+json id,rev,total" && online.last == "DELETE 200 application/hal+json deleted")
            try await world.turn("offline")
            let deleted = try await world.send("DELETE", "/hal/orders/2")
            #expect(deleted.status == 200 && deleted.json == ["deleted": true] && deleted["content-type"] == "application/hal+json")
            let changed = try await world.send("PUT", "/rails/issues/2.json", ["issue": ["subject": "y"]])
            #expect(
                changed.status == 204 && changed.body.isEmpty && changed["rockpool-operation"] != nil, "\(changed.status) \(changed.text)")
            let created = try await world.send("POST", "/hal/orders", ["total": 9])
            #expect(created.status == 201 && created["content-type"] == "application/hal+json" && created.json?["total"] == 9)
            try await world.comeBack()
        }
    }

    /// Nothing was written before: the type is that of what was read.
    @Test func representationsHaveTheTypeOfCopies() async throws {
        try await ShapedWorld.with([
            [
                "collection": "/fhir/Patient", "item": "/fhir/Patient/{id}", "items": "/entry", "element": "/resource",
                "offline_response": "optimistic",
            ]
        ]) { world in
            try await #expect(world.get("/fhir/Patient").status == 200)
            try await world.turn("offline")
            let listed = try await world.get("/fhir/Patient/1")
            #expect(
                listed.status == 200 && listed["content-type"] == "application/fhir+json" && listed["rockpool-listed"] == "1",
                "\(listed.text)")
            let created = try await world.send("POST", "/fhir/Patient", ["resourceType": "Patient"])
            #expect(created.status == 201 && created["content-type"] == "application/fhir+json")
            let read = try await world.get(try #require(created["location"]))
            #expect(read.status == 200 && read["content-type"] == "application/fhir+json")
            let list = try await world.get("/fhir/Patient")
            #expect(list.json?["total"] == 2 && list["content-type"] == "application/fhir+json")
            try await world.comeBack()
        }
    }

    @Test func formsOutliveTheServer() async throws {
        try await ShapedWorld.with(Self.resources) { world in
            _ = try await world.send("DELETE", "/hal/orders/1")
            try await #expect(world.server.stop() == .exit(0))
            try await world.server.start()
            try await world.turn("offline")
            let deleted = try await world.send("DELETE", "/hal/orders/2")
            #expect(deleted.status == 200 && deleted.json == ["deleted": true])
            try await world.comeBack()
        }
    }
}
