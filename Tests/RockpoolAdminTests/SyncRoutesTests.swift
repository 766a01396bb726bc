// `/v1/sync/*` and `/v1/entities` over a real engine (docs/reference/admin-api.md#sync).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct SyncRoutesTests {
    private func door(_ rule: @escaping ScriptedOrigin.Rule = { _ in .ok("[]", [.contentType: "application/json"]) }) throws -> AdminDoor {
        let upstream = Upstream.notes {
            $0.resources = [
                Resource(collection: "/notes", item: "/notes/{id}", delta: .init(query: "after={cursor}", cursor: "/at")),
                Resource(collection: "/tags"),
            ]
        }
        return AdminDoor(try ScriptedEngine(upstreams: [upstream], rule: rule))
    }

    @Test func aPullSaysWhatItDid() async throws {
        let door = try door { _ in .ok(#"[{"id":"1","at":1767225600}]"#, [.contentType: "application/json"]) }
        let answer = try await door.ask(.post, "/v1/sync/pull")
        let item = try #require(answer.json["items"]?.array?.first)
        #expect(answer.status == 200 && item["upstream"] == "notes" && item["resource"] == "/notes" && item["identity"] == "shared")
        #expect(item["full"] == true && item["changed"] == 1 && item["error"]?.isNull == true)
        #expect(try await door.ask(.post, "/v1/sync/pull", token: nil).status == 401)
    }

    @Test func aPullThatFailsSaysWhy() async throws {
        let door = try door { _ in .status(500) }
        #expect(try await door.ask(.post, "/v1/sync/pull").json["items"]?.array?.first?["error"] == "/notes: 500")
    }

    @Test func aPushSaysWhatIsLeft() async throws {
        let door = try door()
        door.pool.goOffline()
        await door.pool.ask(.put, "/notes/1", body: "x")
        let answer = try await door.ask(.post, "/v1/sync/push")
        #expect(answer.json == ["flushed": 1, "delivered": 0, "open": ["pending": 1]])
        #expect(try await door.ask(.post, "/v1/sync/push", token: "other").status == 401)
    }

    @Test func theLogIsReadAPageAtATime() async throws {
        let door = try door()
        door.pool.goOffline()
        for n in 0..<3 { await door.pool.ask(.put, "/notes/\(n)", body: "x") }
        let first = try await door.ask(.get, "/v1/sync/log?limit=2", token: nil).json
        #expect(first["items"]?.array?.map { $0["event"] } == ["pending", "pending"])
        let next = try #require(first["next"]?.string)
        let second = try await door.ask(.get, "/v1/sync/log?limit=2&cursor=\(next)").json
        #expect(second["items"]?.array?.count == 1 && second["next"]?.isNull == true)
        await door.pool.ask(.put, "/notes/7?token=hidden", body: "x")
        let newest = try #require(try await door.ask(.get, "/v1/sync/log?limit=1").json["items"]?.array?.first)
        #expect(newest["method"] == "PUT" && newest["url"]?.string?.hasSuffix("/notes/7?token=REDACTED") == true, "\(newest)")
        let names: Set = ["at", "operation", "method", "url", "client", "userAgent", "event", "detail"]
        #expect(Set(second["items"]?.array?.first?.object?.names ?? []) == names)
    }

    @Test(arguments: ["limit=0", "limit=1001", "limit=x", "cursor=0", "cursor=x", "page=1"]) func otherQueriesAreRefused(
        _ query: String
    ) async throws {
        #expect(try await door().ask(.get, "/v1/sync/log?\(query)").status == 400)
    }

    @Test func everyResourceIsListed() async throws {
        let door = try door()
        _ = try await door.ask(.post, "/v1/sync/pull")
        let first = try await door.ask(.get, "/v1/entities?limit=1").json
        let now = RFC3339.format(door.pool.clock.now)
        let notes: JSONValue = [
            "upstream": "notes", "resource": "/notes", "cached": 0, "serverCount": 0, "pending": 0, "conflicts": 0,
            "lastSync": .string(now),
            "states": ["pending-create": 0, "pending-update": 0, "pending-delete": 0, "pending-pull": 0], "strategy": "field-merge",
            "fields": [],
        ]
        #expect(first["items"] == [notes] && first["next"] == "1", "\(first)")
        let second = try await door.ask(.get, "/v1/entities?cursor=1").json
        let tags = second["items"]?.array?.first
        #expect(tags?["resource"] == "/tags" && tags?["lastSync"]?.isNull == true && tags?["serverCount"]?.isNull == true)
        #expect(second["next"]?.isNull == true)
    }
}
