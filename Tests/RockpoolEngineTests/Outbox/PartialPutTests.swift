// docs/outbox.md#omitted-members: APIs that keep what a PUT leaves out, and those that remove it.
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct PartialPutTests {
    /// Returns an engine whose client has read a note and put another title.
    private func written(_ answer: ScriptedAnswer) async throws -> ScriptedEngine {
        let pool = try ScriptedEngine(upstreams: [.declared()])
        pool.origin.next(.json(#"{"id":1,"title":"sea","done":true}"#))
        await pool.ask(.get, "/notes/1")
        pool.clock.advance(by: .seconds(1))
        pool.origin.next(answer)
        await pool.tell(.put, "/notes/1", #"{"title":"sky"}"#)
        return pool
    }

    private func omitted(_ pool: ScriptedEngine) -> OmittedMembers {
        pool.engine.routes.upstream(for: .notes)?.resources.first?.omitted ?? OmittedMembers()
    }

    @Test(arguments: [true, false])
    func theNextReadShowsWhatAPutHasLeft(isKept: Bool) async throws {
        let pool = try await written(.status(204))
        pool.clock.advance(by: .seconds(1))
        pool.origin.next(.json(isKept ? #"{"id":1,"title":"sky","done":true}"# : #"{"id":1,"title":"sky"}"#))
        await pool.ask(.get, "/notes/1")
        try await eventually("the read is evidence") { (isKept ? omitted(pool).kept : omitted(pool).gone) == ["done"] }
        pool.clock.advance(by: .seconds(1))
        pool.goOffline()
        await pool.tell(.put, "/notes/1", #"{"done":false}"#)
        let shown: JSONValue = isKept ? ["id": 1, "title": "sky", "done": false] : ["id": 1, "done": false]
        #expect(await pool.ask(.get, "/notes/1").json == shown)
    }

    @Test func anAnswerWithTheItemShowsIt() async throws {
        let pool = try await written(.json(#"{"id":1,"title":"sky","done":true}"#))
        try await eventually("the answer is evidence") { omitted(pool).kept == ["done"] }
    }

    @Test func whatWasLearnedOutlivesARestart() throws {
        var learner = ResourceLearner()
        let put = try #require(try PartialPutRows.put(#"{"title":"b"}"#))
        let shown = try #require(put.shown(by: ["id": "1", "title": "b", "done": true]))
        let (isNews, isNewsAgain) = (learner.note(shown, at: "/notes", owner: "a"), learner.note(shown, at: "/notes", owner: "a"))
        #expect(isNews && !isNewsAgain)
        let again = ResourceLearner(json: learner.json)
        #expect(again.shown == learner.shown && again.shown.omitted["/notes"]?.kept == ["done"])
        let (kept, forgotten) = (learner.forget(owner: "b"), learner.forget(owner: "a"))
        #expect(!kept && forgotten && learner.isEmpty)
    }

    /// Two PUTs of one client, each with another member, at an API that has kept, removed or reset the rest.
    @Test(arguments: [#"{"id":1,"title":"sky","mark":"a"}"#, #"{"id":1,"title":"sky"}"#, #"{"id":1,"title":"sky","mark":""}"#])
    func ownPutsNeverConflict(_ between: String) async throws {
        let before = #"{"id":1,"title":"sea","mark":"a"}"#
        let pool = try await ScriptedEngine.holdingOne(.declared(), body: before, etag: nil)
        await pool.tell(.put, "/notes/1", #"{"title":"sky"}"#)
        await pool.tell(.put, "/notes/1", #"{"mark":"b"}"#)
        await pool.replay(.json(before), .status(204), .json(between), .status(204))
        #expect(try await pool.states() == [.delivered, .delivered])
    }

    @Test func anotherClientsChangeIsNoOwnEffect() async throws {
        let pool = try await ScriptedEngine.holdingOne(.declared(), body: #"{"id":1,"title":"sea","done":0}"#, etag: nil)
        await pool.tell(.put, "/notes/1", #"{"title":"sky"}"#)
        await pool.tell(.put, "/notes/1", #"{"done":1}"#)
        await pool.replay(
            .json(#"{"id":1,"title":"sea","done":0}"#), .status(204), .json(#"{"id":1,"title":"sky","done":7}"#),
            .json(#"{"id":1,"title":"sky","done":7}"#))
        #expect(try await pool.states() == [.delivered, .conflicted])
    }
}

/// PUTs to a note that had a title and a mark.
private enum PartialPutRows {
    static func put(_ body: String) throws -> PartialPut? {
        let request = try RequestHead(method: .put, url: "http://notes.test/notes/1", fields: [.contentType: "application/json"])
        return PartialPut(
            request, body: Array(body.utf8), resource: Resource(collection: "/notes", item: "/notes/{id}"),
            before: ["id": "1", "title": "a", "done": true, "none": .null])
    }
}

@Suite struct PartialPutEvidenceTests {
    @Test(
        arguments: [
            (#"{"id":"1","title":"b","done":true}"#, ["done"], []), (#"{"id":"1","title":"b"}"#, [], ["done"]),
            (#"{"id":"1","title":"b","done":null}"#, [], ["done"]), (#"{"id":"1","title":"b","done":false}"#, [], ["done"]),
        ] as [(String, Set<String>, Set<String>)])
    func aMemberWithItsOldValueWasKept(body: String, kept: Set<String>, gone: Set<String>) throws {
        let shown = try #require(try PartialPutRows.put(#"{"title":"b"}"#)?.shown(by: JSONValue.parse(Array(body.utf8))))
        #expect(shown.kept == kept && shown.gone == gone)
    }

    @Test func anotherValueSaysNothing() throws {
        #expect(try PartialPutRows.put(#"{"title":"b"}"#)?.shown(by: ["id": "1", "title": "b", "done": "later"]) == nil)
        // A blank one may be the default.
        #expect(try PartialPutRows.put(#"{"title":"b","done":true}"#)?.shown(by: ["id": "1", "title": "b", "none": .null]) == nil)
        #expect(try PartialPutRows.put(#"{"title":"b","done":true,"none":null}"#) == nil)
    }
}
