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

    @Test(arguments: [(page, Reachability.State.online), (elsewhere, .online), (.status(511), .captive)])
    func aPortalsAnswerIsNotStoredAndTheCopyStandsIn(answer: ScriptedAnswer, state: Reachability.State) async throws {
        let pool = try ScriptedEngine()
        pool.origin.next(.ok("{}", Self.json))
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(20))
        pool.origin.next(answer)
        let reply = await pool.ask(.get, "/a")
        #expect(reply.body == "{}" && reply.cacheStatus == "rockpool; hit; ttl=-10; detail=captive")
        let machine = try #require(pool.engine.reachability.machine(of: "notes"))
        #expect(machine.state == state)
        guard state == .online else { return }
        #expect(machine.isTrusted && machine.probeDue(now: pool.clock.now, somethingWaits: false))
        // Nothing else waits: the next read is sent, and so is a write.
        pool.origin.next(.ok("[]", Self.json), .status(201))
        #expect(await pool.ask(.get, "/a").body == "[]")
        #expect(await pool.ask(.post, "/b", [.contentType: "application/json"], body: "{}").status == 201)
    }

    /// A portal answers every URL: once a second one shows a sign, copies are served and writes wait until a probe has decided.
    @Test(arguments: [page, elsewhere]) func aPortalIsRecognizedByTwoURLs(answer: ScriptedAnswer) async throws {
        let pool = try ScriptedEngine(rule: { _ in .ok("{}", Self.json) })
        for path in ["/a", "/b"] { await pool.ask(.get, path) }
        pool.clock.advance(by: .seconds(20))
        pool.origin.answers { _ in answer }
        for path in ["/a", "/b", "/a", "/b"] { #expect(await pool.ask(.get, path).body == "{}") }
        #expect(pool.engine.reachability.machine(of: "notes")?.state == .suspect && !pool.engine.reachability.isTrusted("notes"))
        #expect(pool.origin.sent.count == 4, "after the second sign nothing more is asked")
        #expect(await pool.ask(.post, "/b", [.contentType: "application/json"], body: "{}").status == 202)
        // Each probe without an expectation is met by a portal's page; its copies stay.
        for _ in 0..<20 {
            pool.engine.reachability.record(.probeAnswered(.expected), for: "notes", now: pool.clock.now)
            pool.clock.advance(by: .seconds(3))
            for path in ["/a", "/b"] { #expect(await pool.ask(.get, path).body == "{}") }
        }
    }

    /// The upstream's page is believed when it has come three times over five seconds, and replaces the copy.
    @Test func aPageThatStaysIsBelieved() async throws {
        let pool = try ScriptedEngine()
        pool.origin.next(.ok("{}", Self.json))
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(20))
        pool.origin.answers { _ in Self.page }
        for _ in 0..<2 {
            #expect(await pool.ask(.get, "/a", [.cacheControl: "no-cache"]).body == "{}")
            pool.clock.advance(by: .seconds(3))
        }
        let reply = await pool.ask(.get, "/a", [.cacheControl: "no-cache"])
        #expect(reply.body == "<html>log in" && reply.cacheStatus?.contains("stored") == true)
        #expect(await pool.ask(.get, "/a").body == "<html>log in")
        #expect(pool.engine.reachability.machine(of: "notes")?.state == .online)
    }

    /// A page where only `Accept` speaks against it is passed on, and concerns nothing else.
    @Test func aPageThatWasNotAskedForIsPassedOnUnstored() async throws {
        let pool = try ScriptedEngine(rule: { _ in Self.page })
        for path in ["/docs", "/api", "/docs/"] {
            let reply = await pool.ask(.get, path, [.accept: "application/json"])
            #expect(reply.body == "<html>log in" && reply.cacheStatus == "rockpool; fwd=uri-miss; detail=portal")
        }
        #expect(pool.engine.reachability.isTrusted("notes"))
        #expect(pool.engine.reachability.machine(of: "notes")?.probeDue(now: pool.clock.now, somethingWaits: true) == false)
        #expect(await pool.ask(.get, "/plain").cacheStatus?.contains("stored") == true)
    }

    /// The page of a portal that was there first gives way to whatever the upstream answers, at once.
    @Test(arguments: ["application/json", "application/rss+xml", "image/png", "text/plain", "application/zip"])
    func aPageThatWasFirstGivesWay(type: String) async throws {
        let pool = try ScriptedEngine()
        pool.origin.next(.ok("<html>log in", [.contentType: "text/html"]), .ok("data", [.contentType: type, .cacheControl: "max-age=10"]))
        #expect(await pool.ask(.get, "/a").body == "<html>log in")
        let reply = await pool.ask(.get, "/a")
        #expect(reply.body == "data" && reply.cacheStatus?.contains("stored") == true)
        pool.goOffline()
        #expect(await pool.ask(.get, "/a").body == "data")
    }

    /// A client that asks for pages gets the upstream's; the copy of the others stays.
    @Test func whoAsksForAnotherTypeGetsTheUpstreamsAnswer() async throws {
        let pool = try ScriptedEngine(rule: { request in
            request.head.fields[.accept]?.contains("html") == true ? Self.page : .ok("{}", Self.json)
        })
        await pool.ask(.get, "/a", [.accept: "application/json"])
        pool.clock.advance(by: .seconds(20))
        #expect(await pool.ask(.get, "/a", [.accept: "text/html"]).body == "<html>log in")
        #expect(await pool.ask(.get, "/a", [.accept: "application/json"]).body == "{}")
        #expect(pool.engine.reachability.isTrusted("notes"))
    }

    /// Servers set a type of their own on messages without a body.
    @Test func theTypeOfA304ChangesNothing() async throws {
        let pool = try ScriptedEngine()
        let tagged: HTTPFields = [.contentType: "application/json", .eTag: "\"1\"", .cacheControl: "max-age=10"]
        pool.origin.next(.ok("{}", tagged), .status(304, [.contentType: "text/html", .eTag: "\"1\""]))
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(20))
        let reply = await pool.ask(.get, "/a")
        #expect(reply.body == "{}" && reply["Content-Type"] == "application/json")
        pool.clock.advance(by: .seconds(20))
        pool.origin.next(Self.page)
        #expect(await pool.ask(.get, "/a").body == "{}", "its kind is that of the stored body")
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

    /// A page that is received again after a successful probe is accepted as the upstream's new representation.
    @Test func whatProbesFindInOrderIsHowTheUpstreamAnswersNow() async throws {
        let pool = try ScriptedEngine(upstreams: Self.probed(), rule: { $0.head.target == "/healthz" ? .status(204) : .ok() })
        pool.origin.next(.ok("{}", Self.json))
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(20))
        pool.engine.reachability.record(.probeAnswered(.expected), for: "notes", now: pool.clock.now)
        pool.origin.next(Self.page)
        #expect(await pool.ask(.get, "/a").body == "{}")
        pool.engine.reachability.record(.probeAnswered(.expected), for: "notes", now: pool.clock.now)
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
                pool.clock.advance(by: .seconds(61))
                pool.origin.answers { _ in .status(status, fields) }
                let reply = await pool.ask(.get, "/a")
                let isStored = reply.cacheStatus?.contains("; stored") == true
                let due = status == 204 ? 2 : 3
                #expect(isStored == (isFresh && turn == due), "turn \(turn): \(reply.cacheStatus ?? "")")
                if isStored { break }
            }
        }
    }

    /// A copy is removed when a second request within an hour gets the same status. A good response in between restarts the count.
    @Test(arguments: [404, 410]) func whatIsGoneIsLearntAtTheSecondSight(status: Int) async throws {
        let pool = try ScriptedEngine()
        let good = ScriptedAnswer.ok("{}", Self.json)
        let gone = ScriptedAnswer.status(status, [.cacheControl: "max-age=999"], "gone")
        let turns: [(answer: ScriptedAnswer, after: TimeSpan, isStored: Bool)] = [
            (good, .zero, true), (gone, .seconds(20), false), (good, .seconds(1), true), (gone, .seconds(20), false),
            (gone, .hours(2), false), (gone, .seconds(59), false), (gone, .seconds(1), true),
        ]
        for (index, turn) in turns.enumerated() {
            pool.clock.advance(by: turn.after)
            pool.origin.next(turn.answer)
            let reply = await pool.ask(.get, "/a")
            #expect((reply.cacheStatus?.contains("; stored") == true) == turn.isStored, "turn \(index): \(reply.cacheStatus ?? "")")
        }
        #expect(await pool.ask(.get, "/a").body == "gone")
    }

    /// Content that is suddenly gone is relayed, and believed a minute later.
    @Test func anEmpty200IsBelievedAtTheSecondSight() async throws {
        let pool = try ScriptedEngine()
        pool.origin.next(.ok("{}", Self.json))
        await pool.ask(.get, "/a")
        for isStored in [false, true] {
            pool.clock.advance(by: .seconds(61))
            pool.origin.next(.ok("", Self.json))
            let reply = await pool.ask(.get, "/a")
            #expect(reply.body.isEmpty && (reply.cacheStatus?.contains("; stored") == true) == isStored, "\(reply.cacheStatus ?? "")")
        }
    }

    /// A client that reloads need not wait for a minute; a private copy is a good copy too.
    @Test func aReloadConfirms() async throws {
        let pool = try ScriptedEngine()
        let gone = ScriptedAnswer.status(404, [.cacheControl: "max-age=999"], "gone")
        pool.origin.next(.ok("{}", Self.json), gone, gone)
        var fields: HTTPFields = [.authorization: "Bearer a"]
        await pool.ask(.get, "/a", fields)
        pool.clock.advance(by: .seconds(20))
        #expect(await pool.ask(.get, "/a", fields).cacheStatus?.contains("; stored") == false)
        pool.clock.advance(by: .seconds(1))
        fields[.cacheControl] = "no-cache"
        #expect(await pool.ask(.get, "/a", fields).cacheStatus?.contains("; stored") == true)
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
