// Lists near what a client of another node of a fleet wrote are not fresh (docs/fleet.md#copies).
import HTTPTypes
import RockpoolCore
import RockpoolTesting
import Testing

@testable import RockpoolEngine

@Suite(.timeLimit(.minutes(1)))
struct NearbyListTests {
    /// Reads a fresh list again after another node told of a write, and returns how often that asked the upstream.
    private func requests(forReading list: String, after written: String, by upstream: Upstream = .notes()) async throws -> Int {
        let pool = try ScriptedEngine(upstreams: [upstream]) { _ in .ok("[]") }
        await pool.ask(.get, list)
        await pool.ask(.get, list)
        #expect(pool.origin.sent.count == 1, "\(list) is not fresh")
        await pool.engine.reads.updates.invalidate([.near("http://api.test\(written)", partition: "")])
        await pool.ask(.get, list)
        return pool.origin.sent.count - 1
    }

    @Test(arguments: [
        ("/notes", "/notes/7", 1), ("/notes?page=2", "/notes/7", 1), ("/", "/notes/7", 1), ("/notes/8", "/notes/7", 0),
        ("/other", "/notes/7", 0),
    ])
    func listsAboveAPathAreValidated(list: String, written: String, asked: Int) async throws {
        try await #expect(requests(forReading: list, after: written) == asked)
    }

    @Test(arguments: [("/notes", 1), ("/notes?page=2", 1), ("/", 0)])
    func theListsOfAResourceAreValidated(list: String, asked: Int) async throws {
        let upstream = Upstream.notes { $0.resources = [Resource(collection: "/notes", item: "/notes/{id}")] }
        try await #expect(requests(forReading: list, after: "/notes/7", by: upstream) == asked)
    }

    @Test func anotherPrincipalIsNotConcerned() async throws {
        let pool = try ScriptedEngine { _ in .ok("[]", [.cacheControl: "private, max-age=60"]) }
        let fields: HTTPFields = [.authorization: "Bearer a-token-of-one-client"]
        await pool.ask(.get, "/notes", fields)
        await pool.ask(.get, "/notes", fields)
        let before = pool.origin.sent.count
        await pool.engine.reads.updates.invalidate([.near("http://api.test/notes/7", partition: "another")])
        await pool.ask(.get, "/notes", fields)
        #expect(pool.origin.sent.count == before)
    }
}
