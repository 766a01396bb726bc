// Optimistic replies in place of the upstream's response (docs/outbox.md#optimistic-replies; docs/reference/behaviour.md#optimistic-replies
// "Optimistic replies").
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct OptimisticReplyTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var method: HTTPRequest.Method
        var target: String
        var body: String?
        var type = "application/json"
        var status: Int
        var shown: String?
        var testDescription: String { "\(method) \(target) \(body ?? "") \(type)" }
    }

    static let cases = [
        Case(method: .put, target: "/notes/1", body: #"{"id":1,"title":"new"}"#, status: 200, shown: #"{"id":1,"title":"new"}"#),
        Case(method: .put, target: "/notes/9", body: #"{"id":9,"title":"new"}"#, status: 201, shown: #"{"id":9,"title":"new"}"#),
        Case(
            method: .patch, target: "/notes/1", body: #"{"done":true}"#, status: 200, shown: #"{"id":1,"title":"sea","done":true}"#),
        Case(
            method: .patch, target: "/notes/1", body: #"{"done":null}"#, type: "application/merge-patch+json", status: 200,
            shown: #"{"id":1,"title":"sea"}"#),
        Case(
            method: .patch, target: "/notes/1", body: #"[{"op":"replace","path":"/title","value":"sky"}]"#,
            type: "application/json-patch+json", status: 200, shown: #"{"id":1,"title":"sky","done":false}"#),
        Case(method: .delete, target: "/notes/1", status: 204),
        Case(method: .delete, target: "/notes/9", status: 204),
        // No optimistic reply: nothing stored, no JSON, a patch that does not apply, an action, no declared resource.
        Case(method: .patch, target: "/notes/9", body: #"{"done":true}"#, status: 202),
        Case(method: .put, target: "/notes/1", body: "plain", type: "text/plain", status: 202),
        Case(
            method: .patch, target: "/notes/1", body: #"[{"op":"test","path":"/title","value":"sky"}]"#,
            type: "application/json-patch+json", status: 202),
        Case(method: .post, target: "/notes/1/publish", body: "{}", status: 202),
        Case(method: .put, target: "/other/1", body: "{}", status: 202),
        Case(method: .post, target: "/notes", body: "plain", type: "text/plain", status: 202),
    ]

    /// As in Django REST: the item's path ends in a slash.
    @Test func theLocationOfACreateIsTheDeclaredPathOfAnItem() async throws {
        let upstream = Upstream.notes {
            $0.resources = [Resource(collection: "/notes/", item: "/notes/{id}/", offlineResponse: .optimistic)]
        }
        let pool = try ScriptedEngine(upstreams: [upstream])
        pool.goOffline()
        let reply = await pool.tell(.post, "/notes/", #"{"title":"new"}"#)
        let id = try #require(reply["Rockpool-Local-Id"])
        #expect(reply.status == 201 && reply["Location"] == "/notes/\(id)/")
        #expect(await pool.tell(.patch, "/notes/\(id)/", #"{"title":"newer"}"#).status == 200)
        await pool.replay(.json(#"{"id":7}"#, status: 201, [.location: "/notes/7/"]), .json(#"{"id":7,"title":"newer"}"#))
        #expect(pool.origin.lines.suffix(2) == ["POST /notes/", "PATCH /notes/7/"])
        pool.clock.advance(by: .seconds(1))
        pool.origin.next(.json(#"{"id":7,"title":"done","done":true}"#))
        #expect(await pool.tell(.post, "/notes/7/done/", "{}").status == 200)
        pool.goOffline()
        let shown = await pool.ask(.get, "/notes/7/")
        #expect(shown.body == #"{"id":7,"title":"done","done":true}"#)
    }

    /// A server that fails is no reason to withhold what the client has written itself.
    @Test func theCopyOfAnOwnWriteStandsInForAServerThatFails() async throws {
        let pool = try ScriptedEngine(upstreams: [.declared()])
        pool.origin.next(.json(#"{"id":1,"title":"sea"}"#, etag: "\"v1\""))
        await pool.ask(.get, "/notes/1")
        pool.origin.next(.json(#"{"id":1,"title":"sky"}"#, etag: "\"v2\""))
        #expect(await pool.tell(.put, "/notes/1", #"{"id":1,"title":"sky"}"#).status == 200)
        pool.origin.next(.status(503))
        let shown = await pool.ask(.get, "/notes/1")
        #expect(shown.status == 200)
        #expect(shown.json == (try JSONValue.parse(Array(#"{"id":1,"title":"sky"}"#.utf8))))
        #expect(shown["Cache-Status"]?.contains("stale-if-error") == true)
    }

    @Test(arguments: cases)
    func everyWriteIsToldWhatItWouldBe(_ write: Case) async throws {
        let pool = try await ScriptedEngine.holdingOne()
        let reply = await pool.tell(write.method, write.target, write.body, [.contentType: write.type])
        #expect(reply.status == write.status)
        #expect(reply["Rockpool-State"] == "pending" && reply["Rockpool-Operation"] != nil)
        #expect(reply["Cache-Control"] == "no-store")
        if let shown = write.shown {
            #expect(reply.json == (try JSONValue.parse(Array(shown.utf8))))
            #expect(reply["ETag"]?.hasPrefix("\"loc-") == true && reply["Content-Type"] == "application/json")
        }
        if write.status == 204 { #expect(reply.body.isEmpty && reply["ETag"] == nil) }
        if write.status == 202 { #expect(reply["Location"]?.hasPrefix("/.well-known/rockpool/operations/") == true) }
        #expect(try await pool.states() == [.pending])
    }

    @Test func aCreateIsToldItsLocalID() async throws {
        let pool = try await ScriptedEngine.holdingOne()
        let reply = await pool.tell(.post, "/notes", #"{"title":"new"}"#)
        let id = try #require(reply["Rockpool-Local-Id"])
        #expect(reply.status == 201 && LocalID(id) != nil && reply["Location"] == "/notes/\(id)")
        #expect(reply.json["id"]?.integer.map { "\($0)" } == id && reply.json["title"]?.string == "new")
        #expect(reply["ETag"] == "\"loc-1\"")
        let read = await pool.ask(.get, "/notes/\(id)")
        #expect(read.status == 200 && read.json == reply.json, "the promised representation can be read")
    }

    @Test(arguments: cases.filter { $0.status != 202 })
    func respondAsyncIsAlways202(_ write: Case) async throws {
        let pool = try await ScriptedEngine.holdingOne()
        let reply = await pool.tell(write.method, write.target, write.body, [.contentType: write.type, .prefer: "respond-async"])
        #expect(reply.status == 202 && reply["Preference-Applied"] == "respond-async")
    }

    @Test func acceptedIsTheDefault() async throws {
        let pool = try await ScriptedEngine.holdingOne(.declared(.accepted))
        let reply = await pool.tell(.post, "/notes", "{}")
        #expect(reply.status == 202 && reply["Rockpool-Local-Id"].flatMap { LocalID($0) } != nil)
    }

    /// A write is not folded into itself, and the second is based on the first.
    @Test func eachStandsOnTheOneBefore() async throws {
        let pool = try await ScriptedEngine.holdingOne()
        #expect(await pool.tell(.patch, "/notes/1", #"{"done":true}"#).json["done"] == .bool(true))
        let second = await pool.tell(.patch, "/notes/1", #"{"title":"sky"}"#)
        #expect(second.json == (try JSONValue.parse(Array(#"{"id":1,"title":"sky","done":true}"#.utf8))))
        await pool.tell(.delete, "/notes/1")
        #expect(await pool.tell(.put, "/notes/1", #"{"id":1}"#).status == 201, "the deleted item is created again")
    }

    /// The tag of the copy is `"v1"`; the note 9 is not known.
    @Test(
        arguments: [
            ("/notes/1", [.ifMatch: "\"v1\""], 200), ("/notes/1", [.ifMatch: "\"v0\""], 412),
            ("/notes/1", [.ifMatch: "\"v0\", \"v1\""], 200),
            ("/notes/1", [.ifNoneMatch: "*"], 412), ("/notes/1", [.ifMatch: "*"], 200), ("/notes/9", [.ifNoneMatch: "*"], 201),
            ("/notes/9", [.ifMatch: "\"v0\""], 201), ("/notes/1", [.ifMatch: "\"v0\"", .prefer: "respond-async"], 202),
        ] as [(String, HTTPFields, Int)])
    func aConditionThatAlreadyFailsIsRefused(target: String, fields: HTTPFields, status: Int) async throws {
        let pool = try await ScriptedEngine.holdingOne()
        let reply = await pool.tell(.put, target, #"{"title":"new"}"#, fields)
        #expect(reply.status == status)
        #expect(try await pool.all().count == (status == 412 ? 0 : 1))
        if status == 412 { #expect(reply.json["type"] == "urn:rockpool:problem:precondition-failed") }
    }

    @Test func theTagOfAQueuedWriteReplacesThatOfTheCopy() async throws {
        let pool = try await ScriptedEngine.holdingOne()
        let tag = try #require(await pool.tell(.patch, "/notes/1", #"{"done":true}"#)["ETag"])
        #expect(await pool.tell(.patch, "/notes/1", "{}", [.ifMatch: "\"v1\""]).status == 412)
        #expect(await pool.tell(.patch, "/notes/1", #"{"title":"sky"}"#, [.ifMatch: tag]).status == 200)
        #expect(await pool.tell(.patch, "/notes/1", "{}", [.ifMatch: tag]).status == 412, "a later write is there")
        await pool.tell(.delete, "/notes/1")
        #expect(await pool.tell(.put, "/notes/1", "{}", [.ifMatch: "*"]).status == 412)
        #expect(await pool.tell(.put, "/notes/1", #"{"id":1}"#, [.ifNoneMatch: "*"]).status == 201)
    }

    @Test func aKeyUsedAgainIsToldTheSameOperation() async throws {
        let pool = try await ScriptedEngine.holdingOne()
        let key: HTTPFields = [.idempotencyKey: "k"]
        let first = await pool.tell(.post, "/notes", "{}", key)
        let again = await pool.tell(.post, "/notes", "{}", key)
        #expect(again["Rockpool-Operation"] == first["Rockpool-Operation"] && again["Rockpool-Local-Id"] == first["Rockpool-Local-Id"])
        #expect(try await pool.all().count == 1)
        #expect(await pool.tell(.post, "/notes", "[]", key).status == 422)
    }
}
