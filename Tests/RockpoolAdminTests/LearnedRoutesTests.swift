// `/v1/learned` over a real engine (docs/reference/admin-api.md#learned).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct LearnedRoutesTests {
    /// Returns a door behind which a list and one of its entries were read.
    private func door() async throws -> AdminDoor {
        let door = AdminDoor(
            try ScriptedEngine { request in
                let fields: HTTPFields = [.contentType: "application/json", .cacheControl: "max-age=60", .eTag: "\"1\""]
                return request.head.path == "/notes" ? .ok(#"[{"id":1,"title":"sea"}]"#, fields) : .ok(#"{"id":1,"title":"sea"}"#, fields)
            })
        for path in ["/notes", "/notes/1"] { await door.pool.ask(.get, path) }
        return door
    }

    private func item(_ door: AdminDoor) async throws -> JSONValue {
        try await eventualValue("a learned collection") {
            try await door.ask(.get, "/v1/learned?upstream=notes", token: nil).json["items"]?.array?.first { $0["state"] == "learned" }
        }
    }

    @Test func whatIsLearnedIsShownAndForgotten() async throws {
        let door = try await door()
        let item = try await item(door)
        #expect(item["upstream"] == "notes" && item["collection"] == "/notes" && item["reason"] == "1 list, 1 entry")
        #expect(item["resource"]?["item"] == "/notes/{id}" && item["resource"]?["creates"] == false)
        #expect(try await door.ask(.delete, "/v1/learned?upstream=notes", token: nil).status == 401)
        let answer = try await door.ask(.delete, "/v1/learned?upstream=notes&collection=%2Fnotes")
        #expect(answer.status == 200 && answer.json == ["upstream": "notes", "forgotten": 1])
        #expect(try await door.ask(.get, "/v1/learned", token: nil).json["items"] == [])
    }

    @Test func otherCallsAreRefused() async throws {
        let door = try await door()
        #expect(try await door.ask(.get, "/v1/learned?upstream=nobody").status == 404)
        #expect(try await door.ask(.delete, "/v1/learned").status == 400)
        #expect(try await door.ask(.delete, "/v1/learned?upstream=nobody").status == 404)
        #expect(try await door.ask(.get, "/v1/learned?limit=1").status == 400)
    }
}
