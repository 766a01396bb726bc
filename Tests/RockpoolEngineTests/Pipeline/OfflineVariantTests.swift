// While the upstream is offline, a stored variant in another acceptable coding or language is served rather than none.
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct OfflineVariantTests {
    @Test(
        arguments: [
            // Columns: request field of the stored variant, response field, request field of the read, expectation.
            ("Accept-Encoding", nil, nil, "gzip, br", true),
            ("Accept-Encoding", "gzip", "gzip", nil, false), ("Accept-Encoding", "gzip", "gzip", "br", false),
            ("Accept-Encoding", "gzip", "gzip", "gzip;q=0", false),
            ("Accept-Encoding", "br", "br", "gzip", false), ("Accept-Language", "de", nil, "en", true),
            ("Accept-Language", "de", nil, nil, true),
            ("Accept", "application/json", nil, "*/*", true), ("Accept", "application/json", nil, "text/html", false),
            ("Cookie", "a=1", nil, "a=2", false),
        ] as [(String, String?, String?, String?, Bool)])
    func anotherVariantStandsIn(_ name: String, _ storedFor: String?, coding: String?, _ askedBy: String?, isServed: Bool) async throws {
        let field = try #require(HTTPField.Name(name))
        var fields: HTTPFields = [.cacheControl: "max-age=60, public", .vary: name, .contentType: "application/json"]
        fields[.contentEncoding] = coding
        let pool = try ScriptedEngine(rule: { [fields] _ in .ok("pearl", fields) })
        var request = HTTPFields()
        request[field] = storedFor
        await pool.ask(.get, "/a", request)
        pool.goOffline()
        request[field] = askedBy
        let reply = await pool.ask(.get, "/a", request)
        #expect(reply.status == (isServed ? 200 : 504), "\(reply.cacheStatus ?? "")")
        if isServed {
            #expect(reply.body == "pearl" && reply.cacheStatus?.contains("; detail=variant") == true && reply["Vary"] == name)
        }
        // Online, each variant is fetched separately.
        pool.comeOnline()
        await pool.ask(.get, "/a", request)
        #expect(pool.origin.sent.count == 2)
    }
}
