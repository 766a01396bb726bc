// docs/outbox.md#learning: an upstream without declared resources learns them, and clients away see their own writes in lists.
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct LearnedResourceTests {
    private static let list = #"[{"id":1,"title":"sea"},{"id":2,"title":"sky"}]"#

    /// Returns an engine of which the upstream was read: a list and one entry of it.
    private func reader(_ change: (inout Upstream) -> Void = { _ in }) async throws -> ScriptedEngine {
        let pool = try ScriptedEngine(upstreams: [.notes(change)])
        await pool.engine.learning.takeUp()
        pool.origin.next(.json(Self.list))
        await pool.ask(.get, "/notes")
        pool.origin.next(.json(#"{"id":1,"title":"sea"}"#, etag: "\"v1\""))
        await pool.ask(.get, "/notes/1")
        return pool
    }

    private func report(_ pool: ScriptedEngine) async -> [LearnedReport] {
        await pool.engine.learning.known().flatMap { $0.learner.report }
    }

    /// Waits until something is learned.
    private func learned(_ pool: ScriptedEngine, creates: Bool = false) async throws -> Resource {
        for _ in 0..<2_000 {
            if let resource = await report(pool).first(where: { $0.state == .learned })?.resource,
                !creates || resource.learned?.isCreating == true
            {
                return resource
            }
            try await Task.sleep(for: .milliseconds(5))
        }
        return try #require(await report(pool).first?.resource)
    }

    @Test func whatWasReadIsAResourceAndShowsEditsAway() async throws {
        let pool = try await reader()
        let resource = try await learned(pool)
        #expect(resource.collection == "/notes" && resource.item == "/notes/{id}")
        pool.clock.advance(by: .seconds(1))
        pool.goOffline()
        #expect(await pool.tell(.patch, "/notes/1", #"{"title":"sea!"}"#).status == 202)
        #expect(await pool.tell(.delete, "/notes/2").status == 202)
        #expect(await pool.ask(.get, "/notes").json == [["id": 1, "title": "sea!"]])
        #expect(await pool.ask(.get, "/notes/1").json == ["id": 1, "title": "sea!"])
        // No create was seen: it is not known what a POST does.
        #expect(await pool.tell(.post, "/notes", #"{"title":"new"}"#).status == 202)
        #expect(await pool.ask(.get, "/notes").json.array?.count == 1)
    }

    @Test func aCreateIsShownOnceTheUpstreamHasAnsweredOne() async throws {
        let pool = try await reader()
        _ = try await learned(pool)
        pool.origin.next(.json(#"{"id":3,"title":"new"}"#, status: 201, [.location: "/notes/3"]))
        #expect(await pool.tell(.post, "/notes", #"{"title":"new"}"#).status == 201)
        #expect(try await learned(pool, creates: true).learned?.isCreating == true)
        // Its answer is the form of the next one.
        try await eventually("the form is known") { try await pool.store.data.learnedReplies().map(\.route.name) == ["POST /notes"] }
        pool.clock.advance(by: .seconds(1))
        pool.origin.next(.json(#"[{"id":1,"title":"sea"},{"id":3,"title":"new"}]"#))
        await pool.ask(.get, "/notes", [.cacheControl: "no-cache"])
        pool.clock.advance(by: .seconds(1))
        pool.goOffline()
        let reply = await pool.tell(.post, "/notes", #"{"title":"away"}"#)
        let id = try #require(reply["Rockpool-Local-Id"])
        #expect(reply.status == 201 && reply.json["title"] == "away")
        let shown = await pool.ask(.get, "/notes").json.array ?? []
        #expect(shown.contains { $0["id"]?.integer.map { "\($0)" } == id && $0["title"] == "away" }, "\(shown)")
    }

    @Test func aContradictionIsTold() async throws {
        let pool = try await reader()
        _ = try await learned(pool)
        pool.clock.advance(by: .hours(1))
        pool.origin.next(.json(#"{"error":"moved"}"#))
        await pool.ask(.get, "/notes", [.cacheControl: "no-cache"])
        for _ in 0..<2_000 {
            if await report(pool).contains(where: { $0.state == .withdrawn }) { break }
            try await Task.sleep(for: .milliseconds(5))
        }
        #expect(await report(pool).map(\.state) == [.withdrawn])
        #expect(pool.engine.routes.upstream(for: .notes)?.resources.isEmpty == true)
    }

    private static let description = #"""
        {
          "openapi": "3.1.0",
          "paths": {
            "/notes": {
              "get": { "responses": { "200": { "content": { "application/json": { "schema": { "items": { "$ref": "#/note" } } } } } } },
              "post": { "responses": { "201": {} } }
            },
            "/notes/{id}": { "get": { "responses": { "200": { "content": { "application/json": { "schema": { "$ref": "#/note" } } } } } } }
          },
          "note": { "properties": { "id": { "type": "integer" } } }
        }
        """#

    @Test func anEmptyListIsKnownByADescriptionThatWasReadAfterIt() async throws {
        let pool = try ScriptedEngine(upstreams: [.notes()])
        await pool.engine.learning.takeUp()
        pool.origin.next(.json("[]", [.link: #"</openapi.json>; rel="service-desc""#]))
        await pool.ask(.get, "/notes")
        pool.origin.next(.json(Self.description))
        await pool.ask(.get, "/openapi.json")
        #expect(try await learned(pool, creates: true).collection == "/notes")
        pool.clock.advance(by: .seconds(1))
        pool.goOffline()
        #expect(await pool.tell(.post, "/notes", #"{"title":"away"}"#).status == 202)
        let shown = await pool.ask(.get, "/notes").json.array ?? []
        #expect(shown.map { $0["title"] } == ["away"] && shown.first?["id"]?.integer != nil, "\(shown)")
    }

    @Test func itIsForgottenOnRequest() async throws {
        let pool = try await reader()
        _ = try await learned(pool)
        #expect(await pool.engine.learning.forget("/notes", of: "notes") == 1)
        #expect(await report(pool).isEmpty && pool.engine.routes.upstream(for: .notes)?.resources.isEmpty == true)
    }

    @Test(arguments: [true, false])
    func nothingIsLearnedWhereItIsOffOrDeclared(isDeclared: Bool) async throws {
        let pool = try await reader {
            if isDeclared { $0.resources = [Resource(collection: "/other")] } else { $0.undeclaredResources = .off }
        }
        try await Task.sleep(for: .milliseconds(300))
        #expect(await pool.engine.learning.known().isEmpty)
        #expect(pool.engine.routes.upstream(for: .notes)?.resources.map(\.collection) == (isDeclared ? ["/other"] : []))
    }

    @Test func answersThatMayNotBeStoredAreNamed() async throws {
        let pool = try ScriptedEngine()
        pool.origin.next(.json(Self.list, [.cacheControl: "no-store"]))
        await pool.ask(.get, "/notes")
        for _ in 0..<2_000 {
            if await !report(pool).isEmpty { break }
            try await Task.sleep(for: .milliseconds(5))
        }
        let report = await report(pool)
        #expect(report.map(\.state) == [.unstored] && report[0].missing?.contains("store: always") == true)
    }
}
