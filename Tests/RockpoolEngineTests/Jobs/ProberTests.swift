// Probes: their timing, their requests, and the effect of their responses (docs/reference/behaviour.md#reachability).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct ProberTests {
    private func probed(_ probe: Probe?) throws -> (ScriptedEngine, Prober) {
        let pool = try ScriptedEngine(upstreams: [.notes { $0.probe = probe }])
        return (pool, Prober(engine: pool.engine, replayer: Replayer(engine: pool.engine)))
    }

    private func state(_ pool: ScriptedEngine) -> Reachability.State? { pool.engine.reachability.machine(of: "notes")?.state }

    /// Nobody says that it is online who has not asked it: once, two seconds after the start.
    @Test func withoutAProbeItIsAskedOnceAndNotAgainWhileOnline() async throws {
        let (pool, prober) = try probed(nil)
        #expect(await prober.runOnce().isEmpty && pool.origin.sent.isEmpty)
        pool.clock.advance(by: .seconds(2))
        #expect(await prober.runOnce() == ["notes"] && pool.origin.sent.count == 1)
        // Its connection keeps no client from a server that serves one at a time.
        #expect(pool.origin.sent.allSatisfy { $0.isFreshConnection && !$0.keepsConnection })
        pool.clock.advance(by: .hours(1))
        #expect(await prober.runOnce().isEmpty && pool.origin.sent.count == 1)
    }

    @Test func withoutAProbeTheRootIsAskedOnceSomebodyWaits() async throws {
        let (pool, prober) = try probed(nil)
        pool.goOffline()
        pool.clock.advance(by: .seconds(5))
        #expect(await prober.runOnce().isEmpty, "no operation waits, so no probe is due")
        await pool.ask(.get, "/a")
        #expect(await prober.runOnce() == ["notes"])
        #expect(pool.origin.lines == ["HEAD /"])
        #expect(state(pool) == .online)
    }

    @Test(arguments: [404, 500, 401, 301])
    func withoutAProbeAnyAnswerIsASignOfLife(status: Int) async throws {
        let (pool, prober) = try probed(nil)
        pool.goOffline()
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(5))
        pool.origin.next(.status(status))
        _ = await prober.runOnce()
        #expect(state(pool) == .online)
    }

    @Test func aDeclaredProbeRunsAtItsInterval() async throws {
        let (pool, prober) = try probed(Probe(path: "/healthz", interval: .seconds(10), expect: [200]))
        #expect(await prober.runOnce().isEmpty)
        pool.clock.advance(by: .seconds(13))
        #expect(await prober.runOnce() == ["notes"])
        #expect(pool.origin.lines == ["GET /healthz"] && pool.origin.sent.allSatisfy(\.keepsConnection))
        #expect(await prober.runOnce().isEmpty, "no second probe is due at once")
    }

    @Test(
        arguments: [
            (ScriptedAnswer.status(204), Reachability.State.online), (.status(500), .suspect), (.status(511), .captive),
            (.status(302, [.location: "http://portal.test/"]), .captive), (.status(302, [.location: "/login"]), .suspect),
            (.status(200, [.contentType: "text/html"], "<html>"), .captive), (.refused, .offline), (.badCertificate, .suspect),
        ] as [(ScriptedAnswer, Reachability.State)])
    func theAnswerOfAProbeSaysHowItIs(answer: ScriptedAnswer, becomes: Reachability.State) async throws {
        let (pool, prober) = try probed(Probe(path: "/healthz", interval: .seconds(10), expect: [204]))
        pool.clock.advance(by: .seconds(13))
        pool.origin.next(answer)
        _ = await prober.runOnce()
        #expect(state(pool) == becomes)
    }

    @Test func whileCaptiveNothingIsSentOrStored() async throws {
        let (pool, prober) = try probed(Probe(path: "/healthz", interval: .seconds(10), expect: [204]))
        pool.origin.answers { $0.head.target == "/healthz" ? .status(204) : .ok() }
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .minutes(5))
        pool.origin.next(.status(200, [.contentType: "text/html"], "log in"))
        _ = await prober.runOnce()
        let sent = pool.origin.sent.count
        #expect(await pool.ask(.get, "/a").body == "pearl")
        #expect(await pool.ask(.get, "/b").status == 504)
        #expect(await pool.ask(.put, "/a", body: "x").status == 202)
        #expect(pool.origin.sent.count == sent)
    }

    @Test func switchedOffByHandNotEvenProbesLeave() async throws {
        let (pool, prober) = try probed(Probe(path: "/healthz"))
        _ = pool.engine.reachability.setMode(.offline, upstream: nil, now: pool.clock.now)
        pool.clock.advance(by: .hours(1))
        await pool.ask(.get, "/a")
        #expect(await prober.runOnce().isEmpty && pool.origin.sent.isEmpty)
    }

    @Test func aProbeCarriesNoCredential() async throws {
        let (pool, prober) = try probed(Probe(path: "/healthz", interval: .seconds(10)))
        await pool.ask(.get, "/a", [.authorization: "ann"])
        pool.clock.advance(by: .seconds(13))
        _ = await prober.runOnce()
        #expect(pool.origin.sent.last?.line == "GET /healthz")
        #expect(pool.origin.sent.last?.head.fields.contains(.authorization) == false)
    }
}

@Suite(.timeLimit(.minutes(1)))
struct CleanerTests {
    @Test func bothStoresAreCleanedAndTheMomentKept() async throws {
        let pool = try ScriptedEngine()
        await pool.ask(.get, "/a")
        pool.goOffline()
        await pool.ask(.put, "/b", body: "x")
        pool.comeOnline()
        #expect(await Replayer(engine: pool.engine).runOnce().delivered == 1)
        pool.clock.advance(by: .days(400))
        let cleaner = Cleaner(engine: pool.engine)
        #expect(cleaner.lastRun == nil)
        let report = await cleaner.runOnce(.init(aggressive: true))
        #expect(report.removed.entries == 2 && report.operations.purged == 1 && report.errors.isEmpty)
        #expect(cleaner.lastRun == pool.clock.now)
        #expect(try await pool.store.cache.usage().entries == 0)
    }

    @Test func aDryRunSaysTheSameAndChangesNothing() async throws {
        let pool = try ScriptedEngine()
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .days(400))
        let cleaner = Cleaner(engine: pool.engine)
        #expect(await cleaner.runOnce(.init(aggressive: true, dryRun: true)).removed.entries == 1)
        #expect(cleaner.lastRun == nil)
        #expect(try await pool.store.cache.usage().entries == 1)
    }

    @Test func whatHasNotEndedIsNeverTaken() async throws {
        let pool = try ScriptedEngine()
        pool.goOffline()
        await pool.ask(.put, "/b", body: "x")
        pool.clock.advance(by: .days(4000))
        let report = await Cleaner(engine: pool.engine).runOnce(.init(aggressive: true))
        #expect(report.operations.purged == 0)
        #expect(try await pool.operations().count == 1)
    }
}
