// Pages of other origins while the upstream is away: its remembered permissions are applied, and never widened.
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct CrossOriginTests {
    private static let page = "https://app.test"

    /// Allows `page` everything with credentials, and refuses all others.
    private static let rule: ScriptedOrigin.Rule = { sent in
        guard sent.head.fields[.origin] == page else { return .status(sent.head.method == .options ? 403 : 200) }
        let fields: HTTPFields = [
            .accessControlAllowOrigin: page, .accessControlAllowCredentials: "true", .vary: "Origin",
            .accessControlAllowMethods: "GET, POST, PATCH, DELETE", .accessControlAllowHeaders: "content-type, authorization",
            .cacheControl: "max-age=60",
        ]
        return sent.head.method == .options ? .status(204, fields) : .ok("[]", fields)
    }

    private func pool(_ cors: CrossOriginRule = .remembered) throws -> ScriptedEngine {
        try ScriptedEngine(
            upstreams: [
                .notes {
                    $0.resources = [Resource(collection: "/notes", item: "/notes/{id}")]
                    $0.cors = cors
                }
            ], rule: Self.rule)
    }

    private func preflight(_ pool: ScriptedEngine, _ method: String, _ target: String, from page: String = page) async -> WholeReply {
        await pool.ask(
            .options, target, [.origin: page, .accessControlRequestMethod: method, .accessControlRequestHeaders: "content-type"])
    }

    private func permission(_ reply: WholeReply) -> String? { reply["Access-Control-Allow-Origin"] }

    @Test func aPageWritesWhileTheUpstreamIsAway() async throws {
        let pool = try pool()
        #expect(await preflight(pool, "POST", "/notes").status == 204)
        let seen = await pool.ask(.get, "/notes", [.origin: Self.page])
        #expect(permission(seen) == Self.page && seen["Access-Control-Expose-Headers"] == nil)
        pool.goOffline()
        let asked = await preflight(pool, "PATCH", "/notes/1")
        #expect(asked.status == 204 && permission(asked) == Self.page && asked["Access-Control-Allow-Credentials"] == "true")
        let written = await pool.ask(.patch, "/notes/1", [.origin: Self.page, .contentType: "application/json"], body: "{}")
        #expect(written.status == 202 && permission(written) == Self.page && written["Vary"] == "Origin")
        #expect(written["Access-Control-Expose-Headers"]?.contains("Location") == true)
        let stale = await pool.ask(.get, "/notes", [.origin: Self.page])
        #expect(stale.status == 200 && permission(stale) == Self.page)
        let missing = await pool.ask(.get, "/notes/9", [.origin: Self.page])
        #expect(missing.status == 504 && permission(missing) == Self.page)
        let path = try #require(written["Location"])
        #expect(permission(await pool.ask(.get, path, [.origin: Self.page])) == Self.page)
        #expect(permission(await preflight(pool, "GET", path)) == Self.page)
        #expect(await preflight(pool, "DELETE", path).status != 204)
    }

    @Test func noOtherPageGetsAnything() async throws {
        let pool = try pool()
        _ = await preflight(pool, "POST", "/notes")
        _ = await preflight(pool, "POST", "/notes", from: "https://evil.test")
        pool.goOffline()
        let asked = await preflight(pool, "POST", "/notes", from: "https://evil.test")
        #expect(asked.status == 504 && permission(asked) == nil)
        let evil: HTTPFields = [.origin: "https://evil.test", .contentType: "text/plain"]
        let written = await pool.ask(.post, "/notes", evil, body: "x")
        #expect(written.status == 503 && permission(written) == nil && written.body.contains("https://evil.test"))
        #expect(permission(await preflight(pool, "POST", "/elsewhere")) == nil)
        let silent = await pool.ask(.post, "/notes", [.contentType: "text/plain"], body: "x")
        #expect(silent.status == 202)
        let path = try #require(silent["Location"])
        #expect(permission(await pool.ask(.get, path, [.origin: "https://evil.test"])) == nil)
        #expect(try await pool.store.data.operations(OperationFilter()).items.count == 1)
    }

    @Test func aForeignWriteIsPassedWhileTheUpstreamAnswers() async throws {
        let pool = try pool()
        let written = await pool.ask(.post, "/notes", [.origin: "https://evil.test", .contentType: "text/plain"], body: "x")
        #expect(written.status == 200 && pool.origin.sent.last?.text == "x")
    }

    @Test func aRefusalTakesThePermissionBack() async throws {
        let pool = try pool()
        _ = await preflight(pool, "POST", "/notes")
        pool.origin.next(.status(403))
        _ = await preflight(pool, "POST", "/notes")
        pool.goOffline()
        #expect(permission(await preflight(pool, "POST", "/notes")) == nil)
    }

    @Test func anErrorInFrontOfTheApiTakesNothingBack() async throws {
        let pool = try pool()
        _ = await preflight(pool, "POST", "/notes")
        pool.origin.next(.status(502), .refused)
        #expect(permission(await preflight(pool, "POST", "/notes")) == Self.page)
        #expect(permission(await preflight(pool, "POST", "/notes")) == Self.page)
    }

    @Test func configuredOriginsNeedNoMemoryAndOffAnswersNothing() async throws {
        let listed = try pool(.origins([Self.page]))
        listed.goOffline()
        #expect(permission(await preflight(listed, "DELETE", "/notes/1")) == Self.page)
        #expect(permission(await preflight(listed, "DELETE", "/notes/1", from: "https://evil.test")) == nil)
        let off = try pool(.off)
        _ = await preflight(off, "POST", "/notes")
        off.goOffline()
        #expect(permission(await preflight(off, "POST", "/notes")) == nil)
    }

    /// A reply that was stored for a program lacks the permission that a page needs.
    @Test func whatAProgramHasFetchedIsFetchedAgainForAPage() async throws {
        let pool = try pool()
        await pool.ask(.get, "/notes")
        #expect(permission(await pool.ask(.get, "/notes", [.origin: Self.page])) == Self.page)
        #expect(pool.origin.sent.count == 2)
        #expect(await pool.ask(.get, "/notes", [.origin: Self.page]).cacheStatus?.contains("hit") == true)
    }

    @Test func aPrivateNetworkIsOpenedToAllowedPagesOnly() async throws {
        let pool = try pool()
        let ask = { (page: String) in
            await pool.ask(
                .options, "/notes",
                [.origin: page, .accessControlRequestMethod: "GET", .accessControlRequestPrivateNetwork: "true"])
        }
        let name = "Access-Control-Allow-Private-Network"
        #expect(await ask(Self.page)[name] == "true")
        #expect(await ask("https://evil.test")[name] == nil)
        pool.goOffline()
        #expect(await ask(Self.page)[name] == "true")
        #expect(await ask("https://evil.test")[name] == nil)
    }
}
