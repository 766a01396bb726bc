// The API's own sync endpoints: a since-pull with its cursor, and a batch push with one result per item (docs/guide/sync.md).
import HTTPTypes
import NotesAPI
import RockpoolCore
import Testing

@Suite struct NotesSyncTests {
    let now = Timestamp(seconds: 1_800_000_000)
    var store: NotesStore

    init() { store = NotesStore(seed: [["title": "first"], ["title": "second"], ["title": "third"]], now: now) }

    mutating func ask(_ method: HTTPRequest.Method, _ target: String, _ body: JSONValue? = nil) throws -> (status: Int, json: JSONValue) {
        let request = NotesRequest(method: method, target: target, body: body?.serialized() ?? [])
        let reply = store.respond(to: request, now: now)
        return (reply.status, reply.body.isEmpty ? .null : try JSONValue.parse(reply.body))
    }

    mutating func push(_ operations: JSONValue...) throws -> [JSONValue] {
        let (status, json) = try ask(.post, "/v1/sync/push", ["operations": .array(operations)])
        #expect(status == 200)
        return json["results"]?.array ?? []
    }

    @Test mutating func pagesGoOnWhereTheLastEnded() throws {
        let first = try ask(.get, "/v1/sync/pull?limit=2").json
        #expect(first["changes"]?.array?.map { $0["id"] } == ["1", "2"] && first["hasMore"] == true && first["tombstones"] == [])
        let cursor = try #require(first["cursor"]?.string)
        let second = try ask(.get, "/v1/sync/pull?limit=2&since=\(cursor)").json
        #expect(second["changes"]?.array?.map { $0["id"] } == ["3"] && second["hasMore"] == false)
        let last = try #require(second["cursor"]?.string)
        let none = try ask(.get, "/v1/sync/pull?since=\(last)").json
        #expect(none["changes"] == [] && none["cursor"]?.string == last)
        _ = try ask(.patch, "/v1/notes/1", ["title": "edited"])
        #expect(try ask(.delete, "/v1/notes/2").status == 204)
        let changes = try ask(.get, "/v1/sync/pull?since=\(last)").json
        #expect(changes["changes"]?.array?.compactMap { $0["title"]?.string } == ["edited"])
        #expect(changes["tombstones"]?.array?.map { $0["id"] } == ["2"] && changes["cursor"]?.string != last)
        #expect(try ask(.get, "/v1/sync/pull").json["changes"]?.array?.count == 2)
    }

    @Test(arguments: ["", "7", "n-", "x1"]) mutating func otherCursorsAreRefused(_ cursor: String) throws {
        #expect(try ask(.get, "/v1/sync/pull?since=\(cursor)").status == 400)
    }

    @Test mutating func eachOperationHasAResult() throws {
        let results = try push(
            ["id": "a", "method": "POST", "entity": "/v1/notes", "body": ["title": "new"]],
            ["id": "b", "method": "PATCH", "entity": "/v1/notes/1", "body": ["title": 7]],
            ["id": "c", "method": "DELETE", "entity": "/v1/notes/2"],
            ["id": "d", "method": "POST", "entity": "/v1/login", "body": ["user": "ann"]], ["method": "DELETE", "entity": "/v1/notes/3"])
        #expect(
            results.map { $0["status"]?.integer } == [201, 422, 204, 400, 400] && results.map { $0["id"] } == ["a", "b", "c", "d", .null])
        #expect(results.first?["headers"]?["Location"] == "/v1/notes/4" && results.first?["body"]?["title"] == "new")
        #expect(store.note(id: "2") == nil && store.note(id: "3") != nil)
    }

    @Test mutating func eachKeyHasOneEffect() throws {
        let operation: JSONValue = ["id": "a", "idempotencyKey": "k", "method": "POST", "entity": "/v1/notes", "body": ["title": "new"]]
        let first = try push(operation)
        #expect(try push(operation) == first && store.note(id: "5") == nil)
        var other = operation
        other["body"] = ["title": "other"]
        #expect(try push(other).first?["status"] == 422)
    }

    @Test(
        arguments: [
            (["ifMatch": "\"1-1\""], 200), (["ifMatch": "\"1-9\""], 409), (["baseVersion": 1], 200), (["baseVersion": 2], 409),
        ] as [(JSONValue, Int64)]) mutating func anotherVersionIsAConflictWithTheServersNote(_ base: JSONValue, _ status: Int64) throws
    {
        let operation: JSONValue = ["id": "a", "method": "PATCH", "entity": "/v1/notes/1", "body": ["title": "mine"]]
        let result = try #require(try push(operation.merging(base)).first)
        #expect(result["status"]?.integer == status && result["body"]?["title"] == (status == 200 ? "mine" : "first"))
    }

    @Test(arguments: [("{}", 422), ("[]", 422), ("{", 400)]) mutating func whatIsNoBatchIsRefused(_ body: String, _ status: Int) {
        let request = NotesRequest(method: .post, target: "/v1/sync/push", body: Array(body.utf8))
        #expect(store.respond(to: request, now: now).status == status)
    }
}
