// docs/outbox.md#reads: lists below items that were created while the upstream is away.
import HTTPTypes
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct EmptyListTests {
    @Test(arguments: [true, false])
    func aListBelowANewItemHasTheFormOfItsSiblings(isOptimistic: Bool) async throws {
        let upstream = Upstream.notes {
            $0.resources = [
                Resource(collection: "/notes", item: "/notes/{id}", offlineResponse: .optimistic),
                Resource(collection: "/notes/{note}/comments", items: "/items", offlineResponse: isOptimistic ? .optimistic : nil),
            ]
        }
        let pool = try ScriptedEngine(upstreams: [upstream])
        pool.origin.next(.json(#"{"count":2,"next":"/notes/7/comments?page=2","items":[{"id":1},{"id":2}],"noteId":7}"#))
        await pool.ask(.get, "/notes/7/comments")
        pool.clock.advance(by: .seconds(1))
        pool.goOffline()
        let note = try #require(await pool.tell(.post, "/notes", #"{"title":"away"}"#)["Rockpool-Local-Id"])
        #expect(await pool.ask(.get, "/notes/\(note)/comments").json == ["count": 0, "next": .null, "items": []])
        await pool.tell(.post, "/notes/\(note)/comments", #"{"text":"first"}"#)
        let shown = await pool.ask(.get, "/notes/\(note)/comments").json
        #expect(shown["count"] == 1 && shown["next"] == .null && shown["items"]?.array?.map { $0["text"] } == ["first"], "\(shown)")
    }
}
