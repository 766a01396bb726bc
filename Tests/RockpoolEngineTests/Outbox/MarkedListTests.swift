// Lists that are older than a delivery whose item was read again before the delivery was known (docs/fleet.md#copies).
import HTTPTypes
import RockpoolCore
import RockpoolStore
import RockpoolTesting
import Testing

@testable import RockpoolEngine

@Suite(.timeLimit(.minutes(1)))
struct MarkedListTests {
    private static let declared = Upstream.notes { $0.resources = [Resource(collection: "/notes", item: "/notes/{id}")] }

    /// Marks the lists of a PUT to `/notes/7` that ended after the first read of a path, and returns whether its copy then lacks the write.
    private func isOld(
        _ read: String, by upstream: Upstream = declared, partition: String? = nil, before mark: (ScriptedEngine) async -> Void = { _ in }
    ) async throws -> Bool {
        let pool = try ScriptedEngine(upstreams: [upstream]) { _ in .json(#"[{"id":7,"title":"sea"}]"#, etag: "\"1\"") }
        await pool.ask(.get, read)
        let ended = pool.engine.cache.ticks.next()
        await mark(pool)
        let request = RequestHead(method: .put, origin: .notes, target: "/notes/7", fields: ScriptedEngine.json)
        let write = AnsweredWrite(request: request, body: nil, answer: ResponseHead(status: 204), answerBody: nil)
        await pool.engine.effects.markLists(of: write, partition: partition, olderThan: ended)
        pool.goOffline()
        return await pool.ask(.get, read)["Rockpool-Dirty"] == "1"
    }

    @Test(arguments: [("/notes", true), ("/notes/", true), ("/notes?page=2", true), ("/notes/7", false), ("/notes/8", false), ("/", false)])
    func theListsOfAResourceAreMarked(read: String, isMarked: Bool) async throws {
        try await #expect(isOld(read) == isMarked)
    }

    @Test(arguments: [("/notes", true), ("/", true), ("/notes/8", false), ("/other", false)])
    func thePathsAboveAnUndeclaredOneAreMarked(read: String, isMarked: Bool) async throws {
        try await #expect(isOld(read, by: .notes()) == isMarked)
    }

    @Test func aListThatWasAskedForAfterTheWriteIsNotMarked() async throws {
        let isMarked = try await isOld("/notes") { pool in
            pool.origin.next(.ok("[]"))
            await pool.ask(.get, "/notes", [.cacheControl: "no-cache"])
            #expect(pool.origin.sent.count == 2)
        }
        #expect(!isMarked)
    }

    @Test func onlyWhatTheWriterReadsIsMarked() async throws {
        let pool = try ScriptedEngine(upstreams: [Self.declared]) { _ in .ok("[]", [.cacheControl: "private, max-age=60"]) }
        let fields: HTTPFields = [.authorization: "Bearer a-token-of-one-client"]
        await pool.ask(.get, "/notes", fields)
        let request = RequestHead(method: .put, origin: .notes, target: "/notes/7")
        let write = AnsweredWrite(request: request, body: nil, answer: ResponseHead(status: 204), answerBody: nil)
        await pool.engine.effects.markLists(of: write, partition: "another", olderThan: pool.engine.cache.ticks.next())
        await pool.ask(.get, "/notes", fields)
        #expect(pool.origin.sent.count == 1)
    }

    /// The copy of the item shows the delivery, so only the lists may lack it.
    @Test func aDeliveryWhoseItemWasReadAgainMarksItsLists() async throws {
        let pool = try ScriptedEngine()
        await pool.ask(.get, "/notes")
        pool.goOffline()
        await pool.ask(.put, "/notes/1", [.authorization: "Bearer ann"], body: "a")
        let queued = try #require(try await pool.operations([.pending]).first)
        _ = try await pool.engine.data.lease(id: queued.id, now: pool.clock.now)
        _ = try await pool.engine.data.finish(
            id: queued.id, disposition: Disposition(state: .delivered), result: OperationResult(head: ResponseHead(status: 200), body: []),
            attempt: AttemptRecord(sent: .yes), now: pool.clock.now)
        pool.comeOnline()
        await pool.ask(.get, "/notes/1")
        await RecalledDeliveries(engine: pool.engine).project()
        await pool.ask(.get, "/notes/1")
        #expect(pool.origin.lines == ["GET /notes", "GET /notes/1"])
        await pool.ask(.get, "/notes")
        #expect(pool.origin.lines == ["GET /notes", "GET /notes/1", "GET /notes"])
    }
}
