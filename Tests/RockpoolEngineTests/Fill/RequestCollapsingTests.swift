// Coalesced fetches: many clients and one cold key give one fetch, and no client receives a response of another principal (RFC 9111 §4,
// docs/caching.md#coalesced-fetches, docs/security-model.md#collapsing).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct CollapsingTests {
    /// Sends `count` requests at once, and lets the upstream answer once `waiting` of them are waiting.
    private func crowd(
        _ pool: ScriptedEngine, _ gate: Gate, count: Int, waiting: Int? = nil,
        fields: @escaping @Sendable (Int) -> HTTPFields = { _ in [:] }
    ) async throws -> [WholeReply] {
        let replies = (0..<count).map { number in Task { await pool.ask(.get, "/a", fields(number)) } }
        try await eventually("engine.waitingReads == waiting ?? count") { pool.engine.waitingReads == waiting ?? count }
        gate.open()
        var all: [WholeReply] = []
        for reply in replies { all.append(await reply.value) }
        return all
    }

    @Test func oneFetchServesAll() async throws {
        let pool = try ScriptedEngine()
        let gate = Gate()
        pool.origin.next(.held(gate, .ok("pearl")))
        let replies = try await crowd(pool, gate, count: 40)
        #expect(pool.origin.lines == ["GET /a"])
        #expect(replies.allSatisfy { $0.status == 200 && $0.body == "pearl" && $0.failure == nil })
        #expect(replies.count { $0.cacheStatus == "rockpool; fwd=uri-miss; stored" } == 1)
        #expect(replies.count { $0.cacheStatus == "rockpool; fwd=uri-miss; collapsed" } == 39)
        #expect(pool.engine.statistics[.collapsed] == 39)
        #expect(await pool.ask(.get, "/a").cacheStatus == "rockpool; hit; ttl=60")
    }

    /// What a body repeats is not known before its end. What only correlates is shared.
    @Test(arguments: [
        ("X-Foo", 4), ("X-User-Id", 4), ("X-Tenant", 4), ("traceparent", 1), ("X-Request-Id", 1), ("User-Agent", 1), ("X-N", 1),
    ])
    func whatABodyMayRepeatIsNotShared(name: String, fetches: Int) async throws {
        let pool = try ScriptedEngine(rule: { sent in .ok("for \(sent.head.fields.first { $0.name.rawName == name }?.value ?? "")") })
        let gate = Gate()
        let field = try #require(HTTPField.Name(name))
        for _ in 0..<fetches { pool.origin.next(.held(gate, .ok("page"))) }
        let replies = try await crowd(pool, gate, count: 8) { [field: name == "X-N" ? "\($0 % 4)" : "value-\($0 % 4)"] }
        #expect(replies.allSatisfy { $0.body == "page" } && pool.origin.sent.count == fetches, "\(pool.origin.sent.count)")
    }

    @Test func followersStreamWhileTheLeaderStillReads() async throws {
        let pool = try ScriptedEngine()
        let feed = BodyPipe()
        pool.origin.next(.live(ResponseHead(status: 200, fields: [.cacheControl: "max-age=60"]), feed, length: nil))
        let request = RequestHead(method: .get, origin: .notes, target: "/a")
        let leader = await pool.engine.respond(Exchange(request: request))
        let follower = await pool.engine.respond(Exchange(request: request))
        guard case .stream(let first, _) = leader.body, case .stream(let second, _) = follower.body else {
            return #expect(Bool(false), "expected streams")
        }
        feed.offer(ByteBuffer(string: "pea"))
        #expect(try await second.next() == ByteBuffer(string: "pea"))
        #expect(try await first.next() == ByteBuffer(string: "pea"))
        // The followers survive the leader's disconnection.
        first.abandon()
        feed.offer(ByteBuffer(string: "rl"))
        feed.finish()
        #expect(try await second.next() == ByteBuffer(string: "rl"))
        #expect(try await second.next() == nil)
        #expect(await pool.ask(.get, "/a").body == "pearl")
        #expect(pool.origin.sent.count == 1)
    }

    @Test func aClientThatLeavesWhileAllWaitTakesNobodyAlong() async throws {
        let pool = try ScriptedEngine()
        let gate = Gate()
        pool.origin.next(.held(gate, .ok("pearl")))
        let leader = Task { await pool.ask(.get, "/a") }
        try await eventually("engine.waitingReads == 1") { pool.engine.waitingReads == 1 }
        let follower = Task { await pool.ask(.get, "/a") }
        try await eventually("engine.waitingReads == 2") { pool.engine.waitingReads == 2 }
        leader.cancel()
        try await eventually("engine.waitingReads == 1") { pool.engine.waitingReads == 1 }
        gate.open()
        #expect(await follower.value.body == "pearl")
        #expect(pool.origin.sent.count == 1)
    }

    @Test(arguments: ["private, max-age=60", "no-store", "max-age=0", "no-cache"])
    func whatIsNotForSharingGoesToTheLeaderAlone(directives: String) async throws {
        let pool = try ScriptedEngine(upstreams: [.notes { $0.policy = .standard }])
        let gate = Gate()
        pool.origin.next(.held(gate, .ok("mine", [.cacheControl: directives])))
        pool.origin.answers { _ in .ok("yours", [.cacheControl: directives]) }
        let replies = try await crowd(pool, gate, count: 10)
        #expect(pool.origin.sent.count == 10)
        #expect(replies.count { $0.body == "mine" } == 1)
        #expect(replies.allSatisfy { $0.cacheStatus?.contains("collapsed") == false })
    }

    @Test func requestsOfDifferentIdentitiesDoNotWaitForEachOther() async throws {
        let pool = try ScriptedEngine(rule: { sent in .ok(sent.head.fields[.authorization] ?? "", [.cacheControl: "private, max-age=60"]) })
        let gate = Gate()
        pool.origin.next(.held(gate, .ok("a", [.cacheControl: "private, max-age=60"])))
        let first = Task { await pool.ask(.get, "/a", [.authorization: "Bearer a"]) }
        try await eventually("engine.waitingReads == 1") { pool.engine.waitingReads == 1 }
        #expect(await pool.ask(.get, "/a", [.authorization: "Bearer b"]).body == "Bearer b")
        gate.open()
        #expect(await first.value.body == "a")
    }

    @Test func requestsOfOneIdentityShareWhatIsTheirs() async throws {
        let pool = try ScriptedEngine()
        let gate = Gate()
        pool.origin.next(.held(gate, .ok("a", [.cacheControl: "private, max-age=60"])))
        let replies = try await crowd(pool, gate, count: 5) { _ in [.authorization: "Bearer a"] }
        #expect(pool.origin.sent.count == 1)
        #expect(replies.allSatisfy { $0.body == "a" })
    }

    @Test func eachVariantIsFetchedOnce() async throws {
        let answer: ScriptedOrigin.Rule = { sent in
            .ok(sent.head.fields[.acceptLanguage] ?? "-", [.cacheControl: "max-age=60", .vary: "Accept-Language"])
        }
        let pool = try ScriptedEngine(rule: answer)
        let gate = Gate()
        pool.origin.answers { sent in .held(gate, answer(sent)) }
        let replies = try await crowd(pool, gate, count: 60) { [.acceptLanguage: "l\($0 % 6)"] }
        #expect(pool.origin.sent.count == 6)
        for (number, reply) in replies.enumerated() { #expect(reply.body == "l\(number % 6)") }
    }

    @Test func afterAnAnswerThatWasNotForSharingNobodyWaits() async throws {
        let pool = try ScriptedEngine(rule: { _ in .ok("x", [.cacheControl: "no-store"]) })
        await pool.ask(.get, "/a")
        let gate = Gate()
        pool.origin.next(.held(gate, .ok("slow", [.cacheControl: "no-store"])))
        let slow = Task { await pool.ask(.get, "/a") }
        try await eventually("origin.sent.count == 2") { pool.origin.sent.count == 2 }
        #expect(await pool.ask(.get, "/a").body == "x")
        gate.open()
        #expect(await slow.value.body == "slow")
    }

    @Test func aFailureIsEverybodysAndStaleCopiesStandIn() async throws {
        let pool = try ScriptedEngine(upstreams: [.notes { $0.policy = .standard }])
        pool.origin.next(.ok("old", [.cacheControl: "max-age=1, stale-if-error=100", .eTag: "\"1\""]))
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(5))
        let gate = Gate()
        pool.origin.next(.held(gate, .refused))
        let replies = try await crowd(pool, gate, count: 10)
        #expect(pool.origin.sent.count == 2)
        #expect(replies.allSatisfy { $0.body == "old" })
    }

    @Test func oneValidationServesAll() async throws {
        let pool = try ScriptedEngine()
        pool.origin.next(.ok("old", [.cacheControl: "max-age=1", .eTag: "\"1\""]))
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(5))
        let gate = Gate()
        pool.origin.next(.held(gate, .status(304, [.cacheControl: "max-age=60", .eTag: "\"1\""])))
        let replies = try await crowd(pool, gate, count: 10)
        #expect(pool.origin.sent.count == 2)
        #expect(replies.allSatisfy { $0.status == 200 && $0.body == "old" })
        #expect(replies.count { $0.cacheStatus == "rockpool; fwd=stale; fwd-status=304" } == 1)
    }

    @Test func whatBreaksOffIsNeverTakenForTheWhole() async throws {
        let pool = try ScriptedEngine()
        let gate = Gate()
        let cut = TransferFailure(kind: .reset, sent: .yes, detail: "cut")
        pool.origin.next(.held(gate, .broken(ResponseHead(status: 200, fields: [.cacheControl: "max-age=60"]), ["pea"], cut)))
        let replies = try await crowd(pool, gate, count: 5)
        // A client that came too late to share the broken fetch has fetched the complete body.
        #expect(replies.allSatisfy { ($0.failure == cut && $0.body == "pea") || ($0.failure == nil && $0.body == "pearl") })
        #expect(replies.contains { $0.failure == cut })
    }

    @Test func refreshesBehindTheClientsBackAreOneAtATime() async throws {
        let pool = try ScriptedEngine()
        pool.origin.next(.ok("old", [.cacheControl: "max-age=1, stale-while-revalidate=100", .eTag: "\"1\""]))
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(5))
        let gate = Gate()
        pool.origin.next(.held(gate, .ok("new")))
        for _ in 0..<10 { #expect(await pool.ask(.get, "/a").body == "old") }
        try await eventually("origin.sent.count == 2") { pool.origin.sent.count == 2 }
        gate.open()
        try await eventually("engine.statistics.total == 11 && engine.waitingReads == 0") {
            pool.engine.statistics.total == 11 && pool.engine.waitingReads == 0
        }
        try await eventually("the refreshed one is served") { await pool.ask(.get, "/a").body == "new" }
        #expect(pool.origin.sent.count == 2)
    }

    @Test func aLeaderThatLeavesWhatNobodyElseMayReadLeavesNothingBehind() async throws {
        let answer: ScriptedOrigin.Rule = { sent in
            .ok(sent.head.fields[.acceptLanguage] ?? "-", [.cacheControl: "max-age=60", .vary: "Accept-Language"])
        }
        let pool = try ScriptedEngine(rule: answer)
        let (gate, feed) = (Gate(), BodyPipe())
        let head = ResponseHead(status: 200, fields: [.cacheControl: "max-age=60", .vary: "Accept-Language"])
        pool.origin.next(.held(gate, .live(head, feed, length: 10_000_000)))
        let leader = Task { await pool.ask(.get, "/a", [.acceptLanguage: "de"]) }
        try await eventually("the leader waits") { pool.engine.waitingReads == 1 }
        let follower = Task { await pool.ask(.get, "/a", [.acceptLanguage: "fr"]) }
        try await eventually("the follower waits") { pool.engine.waitingReads == 2 }
        let ear = BodyPipeTests.Ear(feed)
        leader.cancel()
        try await eventually("the leader has left") { pool.engine.waitingReads == 1 }
        gate.open()
        #expect(await follower.value.body == "fr")
        try await eventually("the fetch is given up") { ear.signals.contains(.abandoned) }
        #expect(await pool.ask(.get, "/a", [.acceptLanguage: "de"]).body == "de")
    }

    @Test func whatHasToBeValidatedEachTimeIsNotWaitedForTwice() async throws {
        let pool = try ScriptedEngine(rule: { _ in .status(304, [.eTag: "\"1\"", .cacheControl: "no-cache"]) })
        pool.origin.next(.ok("x", [.eTag: "\"1\"", .cacheControl: "no-cache"]))
        await pool.ask(.get, "/a")
        let gate = Gate()
        pool.origin.next(.held(gate, .status(304, [.eTag: "\"1\"", .cacheControl: "no-cache"])))
        let replies = try await crowd(pool, gate, count: 10)
        #expect(replies.allSatisfy { $0.body == "x" && $0.cacheStatus == "rockpool; fwd=stale; fwd-status=304" })
        #expect(pool.origin.sent.count == 11)
    }

    @Test func aRefreshThatFailsIsNotSentForEachHit() async throws {
        let pool = try ScriptedEngine(rule: { _ in .status(500) })
        pool.origin.next(.ok("old", [.cacheControl: "max-age=1, stale-while-revalidate=1000"]))
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(5))
        await pool.ask(.get, "/a")
        try await eventually("the first refresh is answered") { pool.engine.refreshes == 0 && pool.origin.sent.count == 2 }
        let gate = Gate()
        pool.origin.answers { _ in .held(gate, .status(500)) }
        for _ in 0..<20 { #expect(await pool.ask(.get, "/a").body == "old") }
        try await eventually("one is under way") { pool.origin.sent.count == 3 }
        gate.open()
        try await eventually("it has ended") { pool.engine.refreshes == 0 }
        #expect(pool.origin.sent.count == 3)
    }

    @Test func anAnswerThatTakesBackItsSearchRuleIsForItsOwnQuery() async throws {
        let rule = HTTPField.Name("No-Vary-Search") ?? .vary
        let pool = try ScriptedEngine(rule: { sent in .ok(sent.head.target, [.cacheControl: "max-age=60"]) })
        pool.origin.next(.ok("ping", [.cacheControl: "max-age=0", rule: "params"]))
        await pool.ask(.get, "/a?op=ping")
        let gate = Gate()
        pool.origin.next(.held(gate, .ok("/a?op=a", [.cacheControl: "max-age=60"])))
        let first = Task { await pool.ask(.get, "/a?op=a", [.cacheControl: "no-cache"]) }
        try await eventually("the first waits") { pool.engine.waitingReads == 1 }
        let second = Task { await pool.ask(.get, "/a?op=b") }
        try await eventually("the second waits") { pool.engine.waitingReads == 2 }
        gate.open()
        #expect(await first.value.body == "/a?op=a")
        #expect(await second.value.body == "/a?op=b")
    }
}
