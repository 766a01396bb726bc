// docs/outbox.md#listed-items: a row that the query names is read from the whole list while the upstream is away.
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct ListedRowTests {
    private func reader() async throws -> ScriptedEngine {
        let upstream = Upstream.notes { $0.resources = [Resource(collection: "/products", item: "/products?id=eq.{id}")] }
        let pool = try ScriptedEngine(upstreams: [upstream])
        pool.origin.next(.json(#"[{"id":7,"name":"rope"},{"id":8,"name":"sail"}]"#))
        await pool.ask(.get, "/products")
        pool.clock.advance(by: .seconds(1))
        pool.goOffline()
        return pool
    }

    @Test func aRowOfTheListIsReadAway() async throws {
        let pool = try await reader()
        let row = await pool.ask(.get, "/products?id=eq.7")
        #expect(row.status == 200 && row.json == [["id": 7, "name": "rope"]], "\(row.status) \(row.body)")
        #expect(row["Rockpool-Listed"] == "1")
        _ = await pool.tell(.patch, "/products?id=eq.7", #"{"name":"line"}"#)
        #expect(await pool.ask(.get, "/products?id=eq.7").json == [["id": 7, "name": "line"]])
    }

    @Test(arguments: ["/products?id=eq.9", "/products?id=eq.7&select=name", "/products?name=eq.rope", "/products?id=gt.7"])
    func whatTheListDoesNotShowIsNotAnswered(target: String) async throws {
        let pool = try await reader()
        #expect(await pool.ask(.get, target).status == 504)
    }

    @Test func anObjectIsNotAList() async throws {
        let pool = try await reader()
        #expect(await pool.ask(.get, "/products?id=eq.7", [.accept: "application/vnd.pgrst.object+json"]).status == 504)
    }
}
