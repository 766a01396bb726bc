// Good copies survive errors, login pages and captive portals (design §5).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct GoodCopyTests {
    private static let json: HTTPFields = [.cacheControl: "max-age=10", .contentType: "application/json"]
    private static let page = ScriptedAnswer.ok("<html>log in", [.contentType: "text/html", .cacheControl: "max-age=999"])
    private static let elsewhere = ScriptedAnswer.status(302, [.location: "http://portal.test/", .cacheControl: "max-age=999"])

    @Test(arguments: [(page, Reachability.State.suspect), (elsewhere, .suspect), (.status(511), .captive)])
    func aPortalsAnswerIsNotStoredAndTheCopyStandsIn(answer: ScriptedAnswer, state: Reachability.State) async throws {
        let pool = try ScriptedEngine()
        pool.origin.next(.ok("{}", Self.json))
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(20))
        pool.origin.next(answer)
        let reply = await pool.ask(.get, "/a")
        #expect(reply.body == "{}" && reply.cacheStatus == "rockpool; hit; ttl=-10; detail=captive")
        #expect(pool.engine.reachability.machine(of: "notes")?.state == state)
        pool.origin.next(answer)
        #expect(await pool.ask(.get, "/a").body == "{}")
        // A probe decides, soon; a doubt alone takes the upstream away from nobody.
        #expect(pool.origin.sent.count == (state == .suspect ? 3 : 2))
        #expect(
            pool.engine.reachability.machine(of: "notes")?.nextProbeAt(somethingWaits: true).map { $0 <= pool.clock.now }
                == (state == .suspect))
    }

    @Test func withTheStandardPolicyItIsPassedOnAndTheCopyKept() async throws {
        let pool = try ScriptedEngine(upstreams: [.notes { $0.policy = .standard }])
        pool.origin.next(.ok("{}", Self.json))
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(20))
        pool.origin.next(Self.page)
        let reply = await pool.ask(.get, "/a")
        #expect(reply.body == "<html>log in" && reply.cacheStatus == "rockpool; fwd=stale; detail=portal")
        #expect(pool.engine.reachability.machine(of: "notes")?.state == .online)
        #expect(try await pool.store.cache.usage().entries == 1)
    }

    @Test func whatAProbeHasFoundInOrderIsHowTheUpstreamAnswersNow() async throws {
        let pool = try ScriptedEngine()
        pool.origin.next(.ok("{}", Self.json))
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(20))
        pool.origin.next(Self.page)
        await pool.ask(.get, "/a")
        pool.engine.reachability.record(.probeAnswered(.expected), for: "notes", now: pool.clock.now)
        pool.origin.next(Self.page)
        #expect(await pool.ask(.get, "/a").body == "<html>log in")
        #expect(await pool.ask(.get, "/a").cacheStatus?.hasPrefix("rockpool; hit") == true)
    }

    @Test(arguments: [403, 429, 500, 503])
    func anErrorWithFreshnessDoesNotReplaceACopy(status: Int) async throws {
        let pool = try ScriptedEngine(upstreams: [.notes { $0.policy = .standard }])
        pool.origin.next(.ok("{}", Self.json), .status(status, [.cacheControl: "max-age=999"], "no"))
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(20))
        #expect(await pool.ask(.get, "/a").status == status)
        pool.origin.next(.ok("{1}", Self.json))
        #expect(await pool.ask(.get, "/a").body == "{1}")
    }
}
