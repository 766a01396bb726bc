// What a pull brought is readable at the items' own URLs (docs/outbox.md#listed-items).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1)))
struct PulledItemTests {
    /// A list of notes that takes `after`; items are never requested.
    private final class Feed: Sendable {
        let items = Mutex<[String: JSONValue]>([:])
        let fields: HTTPFields

        init(_ texts: [String: String] = ["1": "one", "2": "two"], fields: HTTPFields = [.cacheControl: "no-cache"]) {
            self.fields = fields
            for (id, text) in texts { set(id, ["text": .string(text)], at: 1000) }
        }

        func set(_ id: String, _ members: JSONValue, at: Int64) {
            items.withLock { $0[id] = members.merging(["id": .string(id), "at": .number(JSONNumber(1_767_225_000_000 + at))]) }
        }

        var rule: ScriptedOrigin.Rule {
            { request in
                guard request.head.method == .get, request.head.path == "/notes" else { return .status(404) }
                let after = request.head.target.split(separator: "=").last.flatMap { Int64($0) }
                let shown = self.items.withLock { items in
                    items.sorted { $0.key < $1.key }.map(\.value).filter { item in
                        after.map { (item["at"]?.integer ?? 0) > $0 } ?? (item["gone"] == nil)
                    }
                }
                return .ok(
                    String(decoding: JSONValue.array(shown).serialized(), as: UTF8.self),
                    HTTPFields(self.fields + [HTTPField(name: .contentType, value: "application/json")]))
            }
        }
    }

    private func world(_ feed: Feed, conflict: Resource.Conflict = .fieldMerge) throws -> (ScriptedEngine, Puller) {
        let upstream = Upstream.notes {
            $0.resources = [
                Resource(
                    collection: "/notes", item: "/notes/{id}", version: "etag", conflict: conflict,
                    delta: .init(query: "after={cursor}", cursor: "/at", deleted: "/gone"))
            ]
        }
        let pool = try ScriptedEngine(upstreams: [upstream], rule: feed.rule)
        return (pool, Puller(engine: pool.engine))
    }

    @Test func anItemOfAPageIsReadableAtItsOwnURL() async throws {
        let feed = Feed()
        let (pool, puller) = try world(feed)
        let report = try #require(await puller.runOnce().scopes.first)
        #expect(report.error == nil && report.changed == 2)
        pool.goOffline()
        let note = await pool.ask(.get, "/notes/1")
        #expect(note.status == 200 && note.json["text"]?.string == "one" && note["ETag"] == nil && note["Rockpool-Listed"] == "1")
        #expect(await pool.ask(.get, "/notes").status == 504, "a list that was never read is not invented")
        #expect(await pool.ask(.get, "/notes/3").status == 504)
        // While the upstream is reachable the item is fetched.
        pool.comeOnline()
        #expect(await pool.ask(.get, "/notes/1").status == 404)
    }

    @Test func changesAndDeletionsOfLaterPagesFollow() async throws {
        let feed = Feed()
        let (pool, puller) = try world(feed)
        _ = await puller.runOnce()
        feed.set("1", ["text": "edited"], at: 90_000)
        feed.set("2", ["gone": "2026-01-01T00:00:00Z"], at: 90_000)
        feed.set("3", ["text": "three"], at: 90_000)
        pool.clock.advance(by: .seconds(1))
        let report = try #require(await puller.runOnce().scopes.first)
        #expect(report.error == nil && report.changed == 2 && report.gone == 1)
        pool.goOffline()
        #expect(await pool.ask(.get, "/notes/1").json["text"]?.string == "edited")
        #expect(await pool.ask(.get, "/notes/2").status == 404)
        #expect(await pool.ask(.get, "/notes/3").json["text"]?.string == "three")
        let standing = try #require(try await pool.engine.commands.entities().first)
        #expect(standing.cached == 2, "an absence is no item")
        let deletedAt = try await pool.store.data.deletion(upstream: "notes", type: "/notes", id: "2")
        #expect(deletedAt == RFC3339.parse("2026-01-01T00:00:00Z"))
        // It exists again.
        pool.comeOnline()
        feed.set("2", ["text": "again"], at: 190_000)
        pool.clock.advance(by: .seconds(1))
        _ = await puller.runOnce()
        pool.goOffline()
        #expect(await pool.ask(.get, "/notes/2").json["text"]?.string == "again")
    }

    @Test func whatAListForbidsToStoreIsNotStored() async throws {
        let (pool, puller) = try world(Feed(fields: [.cacheControl: "no-store"]))
        #expect(await puller.runOnce().scopes.first?.changed == 2)
        pool.goOffline()
        #expect(await pool.ask(.get, "/notes/1").status == 504)
    }

    /// Without a pull: the list was read as any other response.
    @Test(arguments: ["no-cache", "max-age=60", "private, no-cache"]) func anItemOfACachedListIsReadable(_ caching: String) async throws {
        let (pool, _) = try world(Feed(fields: [.cacheControl: caching]))
        await pool.ask(.get, "/notes")
        pool.goOffline()
        for method in [HTTPRequest.Method.get, .head] {
            let note = await pool.ask(method, "/notes/2")
            #expect(note.status == 200 && note["Rockpool-Listed"] == "1" && note["Cache-Status"]?.contains("detail=offline") == true)
        }
        #expect(await pool.ask(.get, "/notes/2").json["text"]?.string == "two")
        #expect(await pool.ask(.get, "/notes/2?view=full").status == 504)
        #expect(await pool.ask(.get, "/notes/9").status == 504)
        #expect(await pool.ask(.get, "/notes/2", [.authorization: "Bearer b"]).status == (caching.hasPrefix("private") ? 504 : 200))
    }

    /// A list that was read later shows a newer state, unless it is a summary.
    @Test func aNewerListReplacesAnOlderCopyThatHasNoFurtherMembers() async throws {
        let feed = Feed()
        let (pool, _) = try world(feed)
        for (id, text) in [("1", #"{"id":"1","text":"old","at":1}"#), ("2", #"{"id":"2","text":"old","at":1,"body":"long"}"#)] {
            pool.origin.next(.ok(text, [.contentType: "application/json", .cacheControl: "no-cache", .eTag: "\"old\""]))
            await pool.ask(.get, "/notes/\(id)")
        }
        pool.clock.advance(by: .seconds(5))
        await pool.ask(.get, "/notes")
        pool.goOffline()
        let first = await pool.ask(.get, "/notes/1")
        #expect(first.json["text"]?.string == "one" && first["ETag"] == nil)
        let second = await pool.ask(.get, "/notes/2")
        #expect(second.json["text"]?.string == "old" && second.json["body"]?.string == "long" && second["ETag"] == "\"old\"")
    }

    /// The element is the base of the next write; members that only the item has are no change by another client.
    @Test func aListedItemIsTheBaseOfAnOfflineWrite() async throws {
        let (pool, _) = try world(Feed())
        await pool.ask(.get, "/notes")
        pool.goOffline()
        #expect(await pool.ask(.patch, "/notes/1", [.contentType: "application/json"], body: #"{"text":"mine"}"#).status == 202)
        #expect(await pool.ask(.get, "/notes/1").json["text"]?.string == "mine")
        let operation = try #require(try await pool.store.data.openOperations().first)
        let base = try #require(try await pool.store.data.base(of: operation.sequence))
        #expect(base.etag == Conflict.Side.listedMark && operation.baseETag == nil)
        let item = Conflict.Side(body: Array(#"{"id":"1","text":"one","at":1767225001000,"body":"long"}"#.utf8))
        let resource = Resource(collection: "/notes", item: "/notes/{id}", version: "etag")
        #expect(!ConflictPrecheck.hasMoved(from: base, to: item, resource: resource, by: .patch))
        #expect(ConflictPrecheck.hasMoved(from: base, to: item, resource: resource, by: .put), "a PUT would remove the body")
    }
}
