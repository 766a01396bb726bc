// Cache keys of equivalent requests: bodies in keys, equivalent queries, groups, and a POST response stored for the request target.
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct KeyTests {
    private static let query = HTTPRequest.Method("QUERY") ?? .get
    private static let noVarySearch = HTTPField.Name("No-Vary-Search") ?? .vary

    @Test func aQueryIsCachedByItsBody() async throws {
        let pool = try ScriptedEngine(rule: { sent in .ok("found \(sent.text)") })
        #expect(await pool.ask(Self.query, "/a", body: "x").body == "found x")
        #expect(await pool.ask(Self.query, "/a", body: "y").body == "found y")
        let again = await pool.ask(Self.query, "/a", body: "x")
        #expect(again.body == "found x" && again.cacheStatus == "rockpool; hit; ttl=60")
        #expect(await pool.ask(.get, "/a").body == "found ")
        #expect(pool.origin.sent.count == 3)
    }

    @Test func aPostOnARouteThatSaysSoIsCachedByItsBody() async throws {
        let routes = [Route(match: "POST /search", queue: .never, cache: .body)]
        let pool = try ScriptedEngine(upstreams: [.notes { $0.routes = routes }], rule: { sent in .ok("found \(sent.text)") })
        for body in ["x", "y", "x"] { #expect(await pool.ask(.post, "/search", body: body).body == "found \(body)") }
        #expect(pool.origin.sent.count == 2)
        pool.goOffline()
        #expect(await pool.ask(.post, "/search", body: "y").body == "found y")
    }

    @Test func aBodyTooLargeForAKeyIsPassedOnWhole() async throws {
        let pool = try ScriptedEngine(rule: { sent in .ok("\(sent.body.count)") })
        let large = String(repeating: "x", count: 65_537)
        for _ in 0..<2 { #expect(await pool.ask(Self.query, "/a", body: large).body == "65537") }
        #expect(pool.origin.sent.count == 2)
    }

    @Test func queriesThatTheOriginCallsTheSameAreOne() async throws {
        let fields: HTTPFields = [.cacheControl: "max-age=60", Self.noVarySearch: #"key-order, params=("utm")"#]
        let pool = try ScriptedEngine(rule: { sent in .ok(sent.head.target, fields) })
        #expect(await pool.ask(.get, "/a?x=1&y=2&utm=k").body == "/a?x=1&y=2&utm=k")
        for target in ["/a?y=2&x=1", "/a?x=1&utm=other&y=2"] {
            #expect(await pool.ask(.get, target).cacheStatus == "rockpool; hit; ttl=60")
        }
        #expect(await pool.ask(.get, "/a?x=1&y=3").body == "/a?x=1&y=3")
        #expect(await pool.ask(.get, "/b?utm=k").body == "/b?utm=k")
        #expect(pool.origin.sent.count == 3)
        await pool.ask(.put, "/a?utm=w&y=2&x=1", body: "new")
        #expect(await pool.ask(.get, "/a?x=1&y=2").cacheStatus?.hasPrefix("rockpool; fwd=stale") == true)
    }

    @Test func aRouteSaysTheSameWithoutTheOrigin() async throws {
        let rule = try #require(SearchVariance(fieldValue: #"params=("utm")"#))
        let pool = try ScriptedEngine(upstreams: [.notes { $0.routes = [Route(match: "/a", searchVariance: rule)] }])
        await pool.ask(.get, "/a?x=1&utm=k")
        #expect(await pool.ask(.get, "/a?x=1").cacheStatus == "rockpool; hit; ttl=60")
    }

    @Test(arguments: [(#""one""#, true), (#""other""#, false)])
    func aGroupFallsTogether(group: String, isGone: Bool) async throws {
        let (member, invalidation) = (HTTPField.Name("Cache-Groups") ?? .vary, HTTPField.Name("Cache-Group-Invalidation") ?? .vary)
        let pool = try ScriptedEngine(rule: { _ in .ok("x", [.cacheControl: "max-age=60", member: #""one", "two""#]) })
        await pool.ask(.get, "/a")
        pool.origin.next(.status(200, [invalidation: group]))
        await pool.ask(.post, "/b", body: "x")
        #expect((await pool.ask(.get, "/a").cacheStatus == "rockpool; hit; ttl=60") != isGone)
    }

    @Test(arguments: [("/a", true), ("/other", false)])
    func anAnswerToPostThatStandsForItsTargetIsStored(location: String, isStored: Bool) async throws {
        let pool = try ScriptedEngine()
        pool.origin.next(.ok("posted", [.cacheControl: "max-age=60", .contentLocation: location]))
        #expect(await pool.ask(.post, "/a", body: "x").body == "posted")
        #expect(await pool.ask(.get, "/a").body == (isStored ? "posted" : "pearl"))
    }

    @Test func anAnswerToHeadRenewsOrOutdatesWhatIsStored() async throws {
        let pool = try ScriptedEngine(rule: { _ in .ok("pearl", [.cacheControl: "max-age=10", .eTag: "\"1\""]) })
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(20))
        pool.origin.next(.ok("pearl", [.cacheControl: "max-age=100", .eTag: "\"1\""]))
        await pool.ask(.head, "/a")
        #expect(await pool.ask(.get, "/a").cacheStatus == "rockpool; hit; ttl=100")
        pool.clock.advance(by: .seconds(200))
        pool.origin.next(.ok("pearl", [.cacheControl: "max-age=1000", .eTag: "\"2\""]))
        await pool.ask(.head, "/a")
        #expect(await pool.ask(.get, "/a").cacheStatus?.hasPrefix("rockpool; fwd=stale") == true)
    }

    @Test func whatOneIdentityIsToldByHeadChangesNothingOfAnyones() async throws {
        let account = HTTPField.Name("X-Account") ?? .vary
        let pool = try ScriptedEngine(upstreams: [.notes { $0.policy = .standard }])
        pool.origin.next(.ok("page", [.cacheControl: "max-age=10"]))
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(20))
        for directives in ["max-age=60", "private, max-age=60"] {
            pool.origin.next(.status(200, [.cacheControl: directives, account: "alice"]))
            await pool.ask(.head, "/a", [.authorization: "Bearer alice"])
        }
        let anyones = await pool.ask(.get, "/a")
        #expect(anyones["X-Account"] == nil && anyones.cacheStatus?.contains("hit") == false)
    }

    @Test func aStreamOfEventsIsNeverStored() async throws {
        let pool = try ScriptedEngine(rule: { _ in .ok("data: x", [.contentType: "text/event-stream", .cacheControl: "max-age=60"]) })
        #expect(await pool.ask(.get, "/a").cacheStatus == "rockpool; fwd=uri-miss")
        #expect(try await pool.store.cache.usage().entries == 0)
    }

    @Test func aRefreshBehindOfAQueryIsAQuery() async throws {
        let pool = try ScriptedEngine(rule: { sent in .ok("found \(sent.text)", [.cacheControl: "max-age=1, stale-while-revalidate=100"]) })
        await pool.ask(Self.query, "/a", body: "x")
        pool.clock.advance(by: .seconds(5))
        await pool.ask(Self.query, "/a", body: "x")
        try await eventually("it is refreshed") {
            await pool.ask(Self.query, "/a", body: "x").cacheStatus == "rockpool; hit; ttl=1"
        }
        #expect(pool.origin.lines == ["QUERY /a", "QUERY /a"])
    }
}
