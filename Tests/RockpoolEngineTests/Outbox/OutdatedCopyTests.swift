// docs/reference/headers.md#fields-that-rockpool-sets: a stored copy that is known to be out of date says so while it cannot be fetched anew.
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct OutdatedCopyTests {
    @Test func anOutdatedItemIsPendingPull() async throws {
        let upstream = Upstream.notes { $0.resources = [Resource(collection: "/notes", item: "/notes/{id}")] }
        let pool = try ScriptedEngine(upstreams: [upstream])
        for path in ["/notes/1", "/notes/2", "/other"] {
            pool.origin.next(.json(#"{"id":"1"}"#))
            #expect(await pool.ask(.get, path)["Rockpool-Sync"] == nil)
        }
        pool.clock.advance(by: .seconds(1))
        _ = try await pool.engine.cache.invalidate(urls: ["http://api.test/notes/1", "http://api.test/other"])
        pool.goOffline()
        for (path, state) in [("/notes/1", "pending-pull"), ("/notes/2", nil), ("/other", nil)] as [(String, String?)] {
            let reply = await pool.ask(.get, path)
            #expect(reply.status == 200 && reply["Rockpool-Sync"] == state, "\(path): \(reply.status)")
        }
        pool.comeOnline()
        pool.origin.next(.json(#"{"id":"1","n":2}"#))
        let fetched = await pool.ask(.get, "/notes/1")
        #expect(fetched.json["n"] == 2 && fetched["Rockpool-Sync"] == nil)
    }
}
