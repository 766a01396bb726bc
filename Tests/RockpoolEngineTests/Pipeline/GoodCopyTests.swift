// Good copies survive errors, login pages and captive portals (docs/caching.md#good-copies).
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
        // The copy is served until a probe has decided.
        #expect(await pool.ask(.get, "/a").body == "{}")
        #expect(pool.origin.sent.count == 2)
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

    private static func probed() -> [Upstream] { [.notes { $0.probe = Probe(path: "/healthz", expect: [204]) }] }

    /// A page that is received again after each of two successful probes is accepted as the upstream's new representation.
    @Test func whatProbesFindInOrderIsHowTheUpstreamAnswersNow() async throws {
        let pool = try ScriptedEngine(upstreams: Self.probed(), rule: { $0.head.target == "/healthz" ? .status(204) : .ok() })
        pool.origin.next(.ok("{}", Self.json))
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(20))
        pool.engine.reachability.record(.probeAnswered(.expected), for: "notes", now: pool.clock.now)
        for _ in 0..<2 {
            pool.origin.next(Self.page)
            #expect(await pool.ask(.get, "/a").body == "{}")
            pool.engine.reachability.record(.probeAnswered(.expected), for: "notes", now: pool.clock.now)
        }
        pool.origin.next(Self.page)
        #expect(await pool.ask(.get, "/a").body == "<html>log in")
        #expect(await pool.ask(.get, "/a").cacheStatus?.hasPrefix("rockpool; hit") == true)
    }

    /// While the probe fails, nothing is stored, copies are served, and no write is sent.
    @Test func whatAnswersWhileTheProbeIsNotMetIsNobodys() async throws {
        let pool = try ScriptedEngine(upstreams: Self.probed(), rule: { $0.head.target == "/healthz" ? .status(204) : .ok() })
        pool.origin.next(.ok("{}", Self.json))
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(20))
        pool.engine.reachability.record(.probeAnswered(.unexpected(status: 200)), for: "notes", now: pool.clock.now)
        #expect(pool.engine.reachability.machine(of: "notes")?.state == .suspect)
        let copy = await pool.ask(.get, "/a")
        #expect(copy.body == "{}" && copy.cacheStatus == "rockpool; hit; ttl=-10; detail=offline")
        #expect(copy["Proxy-Status"]?.contains("destination_unavailable") == true)
        // Without a stored copy the request is sent, but the response is not stored and does not count as a sign of life.
        pool.origin.next(.ok("{portal}", Self.json))
        #expect(await pool.ask(.get, "/b").cacheStatus?.contains("detail=doubted") == true)
        #expect(!pool.engine.reachability.isTrusted("notes"))
        let write = await pool.ask(.post, "/v1/notes", [.contentType: "application/json"], body: "{}")
        #expect(write.status == 202)
        #expect(pool.origin.lines == ["GET /a", "GET /healthz", "GET /b"])
        pool.engine.reachability.record(.probeAnswered(.expected), for: "notes", now: pool.clock.now)
        #expect(pool.engine.reachability.machine(of: "notes")?.state == .online)
    }

    /// A captive portal may answer like the API: the response to a write is trusted only if a probe succeeds at about the same time.
    @Test(arguments: [204, 200]) func anAnswerToAWriteIsConfirmedByTheProbe(probe status: Int) async throws {
        let pool = try ScriptedEngine(upstreams: Self.probed())
        pool.origin.answers { request in request.head.target == "/healthz" ? .status(status) : .ok("{}", Self.json) }
        let write = await pool.ask(.post, "/v1/notes", [.contentType: "application/json"], body: "{}")
        #expect(write.status == (status == 204 ? 200 : 202))
        #expect(pool.origin.lines == ["POST /v1/notes", "GET /healthz"])
        // A successful probe confirms responses for about one second.
        await pool.ask(.post, "/v1/notes", [.contentType: "application/json"], body: "{}")
        #expect(pool.origin.lines.count == (status == 204 ? 3 : 2))
    }

    /// A probe that fails without a statement about the upstream confirms no response.
    @Test func aProbeThatFailsConfirmsNothing() async throws {
        let pool = try ScriptedEngine(upstreams: Self.probed())
        pool.origin.answers { request in
            request.head.target == "/healthz"
                ? .failure(TransferFailure(kind: .protocolError, sent: .yes, detail: "garbage")) : .ok("{}", Self.json)
        }
        let write = await pool.ask(.post, "/v1/notes", [.contentType: "application/json"], body: "{}")
        #expect(write.status == 202)
        #expect(pool.origin.lines == ["POST /v1/notes", "GET /healthz", "GET /healthz"])
    }

    @Test(arguments: [301, 308, 302, 204])
    func whatHasNoContentReplacesACopyOnlyWithFreshnessAndARedirectWhenConfirmed(status: Int) async throws {
        for isFresh in [true, false] {
            let pool = try ScriptedEngine()
            pool.origin.next(.ok("{}", Self.json))
            await pool.ask(.get, "/a")
            let fields: HTTPFields = isFresh ? [.location: "/b", .cacheControl: "max-age=999"] : [.location: "/b"]
            for turn in 1...4 {
                pool.clock.advance(by: .seconds(20))
                pool.origin.answers { _ in .status(status, fields) }
                let reply = await pool.ask(.get, "/a")
                let isStored = reply.cacheStatus?.contains("; stored") == true
                let due = status == 204 ? 1 : 3
                #expect(isStored == (isFresh && turn == due), "turn \(turn): \(reply.cacheStatus ?? "")")
                if isStored { break }
            }
        }
    }

    /// A shared copy is removed when a second request within an hour gets the same status. A good response in between restarts the count.
    @Test(arguments: [404, 410]) func whatIsGoneIsLearntAtTheSecondSight(status: Int) async throws {
        let pool = try ScriptedEngine()
        let good = ScriptedAnswer.ok("{}", Self.json)
        let gone = ScriptedAnswer.status(status, [.cacheControl: "max-age=999"], "gone")
        let turns: [(answer: ScriptedAnswer, after: TimeSpan, isStored: Bool)] = [
            (good, .zero, true), (gone, .seconds(20), false), (good, .seconds(1), true), (gone, .seconds(20), false),
            (gone, .hours(2), false), (gone, .seconds(1), true),
        ]
        for (index, turn) in turns.enumerated() {
            pool.clock.advance(by: turn.after)
            pool.origin.next(turn.answer)
            let reply = await pool.ask(.get, "/a")
            #expect((reply.cacheStatus?.contains("; stored") == true) == turn.isStored, "turn \(index): \(reply.cacheStatus ?? "")")
        }
        #expect(await pool.ask(.get, "/a").body == "gone")
    }

    /// An error for an identity's own private copy takes effect at once.
    @Test func anIdentitysOwnCopyGoesAtTheFirstSight() async throws {
        let pool = try ScriptedEngine()
        pool.origin.next(.ok("{}", Self.json), .status(404, [.cacheControl: "max-age=999"], "gone"))
        await pool.ask(.get, "/a", [.authorization: "Bearer a"])
        pool.clock.advance(by: .seconds(20))
        #expect(await pool.ask(.get, "/a", [.authorization: "Bearer a"]).cacheStatus?.contains("; stored") == true)
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
