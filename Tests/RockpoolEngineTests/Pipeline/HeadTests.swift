// Responses to HEAD of URLs of which nothing else is stored (docs/caching.md#head).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct HeadTests {
    private func pool(_ status: Int, _ fields: HTTPFields) throws -> ScriptedEngine {
        try ScriptedEngine(rule: { asked in
            asked.head.method == .head ? .status(status, fields) : .status(405)
        })
    }

    /// Waits for the stored head; of `tag`, if that is not nil. It is stored beside the reply.
    private func isStored(_ pool: ScriptedEngine, _ target: String, tag: String? = nil) async throws {
        let request = RequestHead(method: .get, origin: .notes, target: target)
        try await eventually("the head is stored") {
            let entries = try await pool.store.cache.lookup(CacheKey(request).ofHead)
            return entries.contains { tag == nil || $0.response.head.fields[.eTag] == tag }
        }
    }

    @Test(
        arguments: [
            (200, [.contentLength: "5000000000", .eTag: "\"1\"", .contentType: "application/zip"]), (200, [:]),
            (200, [.cacheControl: "no-cache"]), (404, [.cacheControl: "max-age=60"]), (204, [:]), (301, [.location: "/b"]),
        ] as [(Int, HTTPFields)])
    func headIsAnsweredAwayAsItWas(status: Int, fields: HTTPFields) async throws {
        let pool = try pool(status, fields)
        let online = await pool.ask(.head, "/a")
        try await isStored(pool, "/a")
        pool.clock.advance(by: .hours(2))
        pool.goOffline()
        let away = await pool.ask(.head, "/a")
        #expect(away.status == status && online.status == status && away.cacheStatus?.contains("hit") == true)
        for name in [HTTPField.Name.eTag, .contentType, .location] { #expect(away.head.fields[name] == fields[name]) }
        // A GET needs what HEAD does not bring.
        #expect(await pool.ask(.get, "/a").status == 504)
        #expect(await pool.ask(.head, "/b").status == 504)
        // Online, each HEAD is sent.
        pool.comeOnline()
        let count = { pool.origin.sent.count { $0.head.method == .head && $0.head.target == "/a" } }
        let before = count()
        await pool.ask(.head, "/a")
        #expect(count() == before + 1)
    }

    @Test(arguments: [[.cacheControl: "no-store"], [.cacheControl: "private"]] as [HTTPFields])
    func aHeadThatMayNotBeStoredIsNot(fields: HTTPFields) async throws {
        let pool = try pool(200, fields)
        let isPrivate = fields[.cacheControl] == "private"
        await pool.ask(.head, "/a", isPrivate ? [.authorization: "anna"] : [:])
        await pool.ask(.head, "/b", [:])
        pool.goOffline()
        #expect(await pool.ask(.head, "/a", [.authorization: "bob"]).status == 504)
        #expect(await pool.ask(.head, "/a").status == 504)
    }

    /// What a GET has brought answers HEAD, whatever HEAD said before.
    @Test func aStoredBodyIsBetter() async throws {
        let pool = try pool(200, [.eTag: "\"1\""])
        await pool.ask(.head, "/a")
        try await isStored(pool, "/a")
        pool.origin.next(.ok("pearl", [.eTag: "\"2\"", .cacheControl: "max-age=60"]))
        await pool.ask(.get, "/a")
        pool.goOffline()
        let head = await pool.ask(.head, "/a")
        #expect(head["ETag"] == "\"2\"" && head.body.isEmpty)
        #expect(await pool.ask(.get, "/a").body == "pearl")
    }

    @Test func aNewerHeadReplacesIt() async throws {
        let pool = try pool(200, [:])
        for tag in ["\"1\"", "\"2\""] {
            pool.origin.answers { $0.head.method == .head ? .status(200, [.eTag: tag]) : .status(405) }
            await pool.ask(.head, "/a")
            try await isStored(pool, "/a", tag: tag)
            pool.clock.advance(by: .seconds(1))
        }
        pool.goOffline()
        #expect(await pool.ask(.head, "/a")["ETag"] == "\"2\"")
    }
}
