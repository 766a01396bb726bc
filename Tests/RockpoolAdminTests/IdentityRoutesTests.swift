// `/v1/identities` over a real engine (docs/reference/admin-api.md#identities).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct IdentityRoutesTests {
    /// Returns a door behind which two identities have read, and the first has a write that waits.
    private func door() async throws -> AdminDoor {
        let door = AdminDoor(try ScriptedEngine { _ in .ok("hers", [.cacheControl: "private, max-age=60"]) })
        for name in ["anna", "bert"] { await door.pool.ask(.get, "/me", [.authorization: Token.bearer(name)]) }
        door.pool.goOffline()
        await door.pool.ask(.put, "/notes/1", [.authorization: Token.bearer("anna")], body: "x")
        return door
    }

    private func anna(_ door: AdminDoor) async throws -> JSONValue {
        let items = try await door.ask(.get, "/v1/identities", token: nil).json["items"]?.array ?? []
        #expect(items.count == 2)
        return try #require(items.first { $0["waiting"] == 1 })
    }

    @Test func theyAreListedAPageAtATime() async throws {
        let door = try await door()
        let anna = try await anna(door)
        #expect(anna["upstreams"] == ["notes"] && anna["entries"] == 1 && anna["credential"] == true && anna["sealed"] == false)
        let first = try await door.ask(.get, "/v1/identities?limit=1", token: nil).json
        let next = try #require(first["next"]?.string)
        let second = try await door.ask(.get, "/v1/identities?limit=1&cursor=\(next)", token: nil).json
        #expect(second["next"]?.isNull == true && second["items"]?.array?.first?["id"] != first["items"]?.array?.first?["id"])
    }

    @Test(arguments: [("", 0, 1), ("?writes=keep", 0, 1), ("?writes=drop", 1, 0)])
    func forgettingOneSaysWhatWasRemoved(_ query: String, _ dropped: Int, _ waiting: Int) async throws {
        let door = try await door()
        let id = try #require(try await anna(door)["id"]?.string)
        #expect(try await door.ask(.delete, "/v1/identities/\(id)\(query)", token: nil).status == 401)
        let answer = try await door.ask(.delete, "/v1/identities/\(id)\(query)")
        #expect(answer.status == 200 && answer.json["entries"] == 1 && answer.json["credential"] == true)
        #expect(answer.json["dropped"]?.integer == Int64(dropped) && answer.json["waiting"]?.integer == Int64(waiting))
        let left = try await door.ask(.get, "/v1/identities", token: nil).json["items"]?.array ?? []
        #expect(left.count == 1 + waiting, "\(left)")
    }

    @Test func otherCallsAreRefused() async throws {
        let door = try await door()
        let id = try #require(try await anna(door)["id"]?.string)
        #expect(try await door.ask(.delete, "/v1/identities/nobody").status == 404)
        #expect(try await door.ask(.delete, "/v1/identities/\(id)?writes=yes").status == 400)
        #expect(try await door.ask(.get, "/v1/identities?limit=0").status == 400)
    }
}
