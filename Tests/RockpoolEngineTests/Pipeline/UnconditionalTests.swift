// Conditional requests without a stored response fill the cache, and are answered from the fetched response (RFC 9111 §4.3.2).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct UnconditionalTests {
    private static let fields: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"v1\"", .lastModified: "Sun, 06 Nov 1994 08:49:37 GMT"]

    @Test(
        arguments: [
            (["If-None-Match": "\"v1\""], 304), (["If-None-Match": "\"v0\""], 200),
            (["If-Modified-Since": "Sun, 06 Nov 1994 08:49:37 GMT"], 304), (["If-Modified-Since": "Sat, 05 Nov 1994 08:49:37 GMT"], 200),
        ])
    func theWholeIsFetchedAndStored(_ conditions: [String: String], status: Int) async throws {
        let pool = try ScriptedEngine(rule: { _ in .ok("pearl", Self.fields) })
        var fields = HTTPFields()
        for (name, value) in conditions { fields[try #require(HTTPField.Name(name))] = value }
        let reply = await pool.ask(.get, "/a", fields)
        #expect(reply.status == status && reply.body == (status == 200 ? "pearl" : "") && reply["ETag"] == "\"v1\"")
        let sent = try #require(pool.origin.sent.first?.head.fields)
        #expect(!sent.contains(.ifNoneMatch) && !sent.contains(.ifModifiedSince))
        try await eventually("the copy is stored") { try await pool.store.cache.usage().entries == 1 }
        pool.goOffline()
        #expect(await pool.ask(.get, "/a").body == "pearl")
        #expect(pool.origin.sent.count == 1)
    }

    /// After a response that is not storable, the next request is sent with its conditions.
    @Test func whatIsNotStoredKeepsItsConditions() async throws {
        let pool = try ScriptedEngine(rule: { _ in .ok("pearl", [.cacheControl: "no-store", .eTag: "\"v1\""]) })
        for _ in 0..<2 { await pool.ask(.get, "/a", [.ifNoneMatch: "\"v1\""]) }
        #expect(pool.origin.sent.map { $0.head.fields[.ifNoneMatch] } == [nil, "\"v1\""])
    }

    @Test func aRangeKeepsItsConditions() async throws {
        let pool = try ScriptedEngine(rule: { _ in .ok("pearl", Self.fields) })
        await pool.ask(.get, "/a", [.ifNoneMatch: "\"v1\"", .range: "bytes=0-1"])
        #expect(pool.origin.sent.first?.head.fields[.ifNoneMatch] == "\"v1\"")
    }
}
