// Delivery of the outbox: in order within lanes, with each identity's own credential, every response recorded (docs/outbox.md#answers,
// docs/outbox.md#lanes, docs/outbox.md#wire-rule).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct ReplayerTests {
    /// Returns an engine with an offline upstream and these writes queued in order.
    private func away(
        to upstream: Upstream = .notes(), _ writes: [(String, String, HTTPFields)]
    ) async throws -> (ScriptedEngine, Replayer) {
        let pool = try ScriptedEngine(upstreams: [upstream])
        pool.goOffline()
        for (target, body, fields) in writes { #expect(await pool.ask(.put, target, fields, body: body).status == 202) }
        return (pool, Replayer(engine: pool.engine))
    }

    private func states(_ pool: ScriptedEngine) async throws -> [OperationState] {
        try await pool.operations(Set(OperationState.allCases)).map(\.state)
    }

    @Test func whileTheUpstreamIsAwayNothingIsSent() async throws {
        let (pool, replayer) = try await away([("/notes/1", "a", [:])])
        #expect(await replayer.runOnce().sent == 0)
        #expect(pool.origin.sent.isEmpty && replayer.somethingWaits(for: "notes"))
    }

    @Test func aLaneIsDeliveredInOrder() async throws {
        let (pool, replayer) = try await away((0..<5).map { ("/notes/1", "\($0)", [:]) })
        pool.comeOnline()
        let report = await replayer.runOnce()
        #expect(report.sent == 5 && report.delivered == 5)
        #expect(pool.origin.sent.map(\.text) == ["0", "1", "2", "3", "4"])
        #expect(!replayer.somethingWaits(for: "notes"))
    }

    /// Neither a flush, nor a retry, nor a push sends before the upstream's time, and each names it; `anyway` sends at once.
    @Test(arguments: [429, 425]) func whatRetryAfterHoldsIsNamed(status: Int) async throws {
        let (pool, replayer) = try await away([("/notes/1", "a", [:])])
        pool.origin.answers { _ in .status(status, [.retryAfter: "600"]) }
        pool.comeOnline()
        _ = await replayer.runOnce()
        let commands = pool.engine.commands
        let flushed = try await commands.flush()
        let held = try #require(flushed.held.first)
        #expect(flushed.flushed == 0 && held.upstream == "notes" && held.operations == 1)
        #expect(held.until >= pool.clock.now + .seconds(600))
        let pushed = try await commands.push(within: .seconds(30))
        #expect(pushed.held == flushed.held && pushed.flushed == 0)
        let id = try #require(try await pool.operations([.pending]).first?.id)
        #expect(try await commands.steer(.retry, id: id)?.warning?.contains("demands to wait") == true)
        _ = await replayer.runOnce()
        #expect(pool.origin.sent.count == 1)
        pool.origin.answers { _ in .ok() }
        #expect(try await commands.flush(anyway: true) == FlushReport(flushed: 1))
        _ = await replayer.runOnce()
        let ended = try await pool.operations(Set(OperationState.allCases))
        #expect(ended.map(\.state) == [.delivered], "\(ended)")
    }

    @Test func refusalHoldsNoLane() async throws {
        let (pool, replayer) = try await away([("/notes/1", "a", [:]), ("/notes/1", "b", [:]), ("/notes/2", "c", [:])])
        pool.origin.answers { $0.text == "a" ? .status(422) : .ok() }
        pool.comeOnline()
        _ = await replayer.runOnce()
        #expect(Set(pool.origin.sent.map(\.text)) == ["a", "b", "c"])
        #expect(try await states(pool) == [.dead, .delivered, .delivered])
    }

    @Test func orderGlobalIsOneLane() async throws {
        let (pool, replayer) = try await away(
            to: .notes { $0.order = .global }, [("/notes/1", "a", [:]), ("/notes/2", "b", [:]), ("/x", "c", [:])])
        pool.comeOnline()
        _ = await replayer.runOnce()
        #expect(pool.origin.sent.map(\.text) == ["a", "b", "c"])
    }

    @Test(
        arguments: [
            (IdempotencySettings.Format.quoted, IdempotencySettings.Honoured.unknown, "\""), (.raw, .yes, ""), (.quoted, .no, nil),
        ] as [(IdempotencySettings.Format, IdempotencySettings.Honoured, String?)])
    func theKeyIsWrittenAsTheUpstreamTakesIt(
        format: IdempotencySettings.Format, honoured: IdempotencySettings.Honoured, quote: String?
    ) async throws {
        let upstream = Upstream.notes { ($0.idempotency.format, $0.idempotency.honoured) = (format, honoured) }
        let (pool, replayer) = try await away(to: upstream, [("/notes/1", "a", [:])])
        pool.comeOnline()
        _ = await replayer.runOnce()
        let key = try #require(try await pool.operations([.delivered]).first?.idempotencyKey)
        #expect(pool.origin.sent.first?.head.fields[.idempotencyKey] == quote.map { $0 + key + $0 })
    }

    @Test func aClientsKeyIsSentAsItCame() async throws {
        let (pool, replayer) = try await away([("/notes/1", "a", [.idempotencyKey: "bare"])])
        pool.comeOnline()
        _ = await replayer.runOnce()
        #expect(pool.origin.sent.first?.head.fields[.idempotencyKey] == "bare")
    }

    @Test func everyAttemptOfAnOperationHasTheSameKey() async throws {
        let (pool, replayer) = try await away([("/notes/1", "a", [:])])
        pool.origin.next(.status(500))
        pool.comeOnline()
        _ = await replayer.runOnce()
        pool.clock.advance(by: .hours(1))
        _ = await replayer.runOnce()
        #expect(pool.origin.sent.count == 2)
        #expect(Set(pool.origin.sent.map { $0.head.fields[.idempotencyKey] }).count == 1)
    }

    /// The process was killed after the delivery and before the cache was invalidated: the next start invalidates it.
    @Test func whatACrashKeptFromTheCacheIsToldAtTheNextStart() async throws {
        let pool = try ScriptedEngine()
        await pool.ask(.get, "/notes/1")
        pool.goOffline()
        await pool.ask(.put, "/notes/1", [.authorization: "Bearer ann"], body: "a")
        let queued = try #require(try await pool.operations([.pending]).first)
        _ = try await pool.engine.data.lease(id: queued.id, now: pool.clock.now)
        _ = try await pool.engine.data.finish(
            id: queued.id, disposition: Disposition(state: .delivered), result: OperationResult(head: ResponseHead(status: 200), body: []),
            attempt: AttemptRecord(sent: .yes), now: pool.clock.now)
        pool.comeOnline()
        await pool.ask(.get, "/notes/1")
        #expect(pool.origin.lines == ["GET /notes/1"], "the copy is fresh until it is invalidated")
        await RecalledDeliveries(engine: pool.engine).project()
        await pool.ask(.get, "/notes/1")
        #expect(pool.origin.lines.suffix(2) == ["GET /notes/1", "GET /notes/1"])
        // What was requested after the delivery shows it.
        pool.clock.advance(by: .minutes(2))
        try await eventually("the newer copy is stored") {
            let before = pool.origin.lines.count
            await pool.ask(.get, "/notes/1")
            return pool.origin.lines.count == before
        }
        let count = pool.origin.lines.count
        await RecalledDeliveries(engine: pool.engine).project()
        await pool.ask(.get, "/notes/1")
        #expect(pool.origin.lines.count == count)
    }

    @Test func whatWasDeliveredIsRecordedAndInvalidates() async throws {
        let pool = try ScriptedEngine()
        await pool.ask(.get, "/notes/1")
        pool.goOffline()
        await pool.ask(.put, "/notes/1", body: "a")
        pool.comeOnline()
        pool.origin.next(.status(200, [:], "done"))
        _ = await Replayer(engine: pool.engine).runOnce()
        let operation = try #require(try await pool.operations([.delivered]).first)
        #expect(operation.result?.head.status == 200 && operation.result?.body == Array("done".utf8))
        await pool.ask(.get, "/notes/1")
        #expect(pool.origin.lines.last == "GET /notes/1", "the delivery invalidated the old copy, so the read is sent upstream")
    }

    /// The table of docs/outbox.md#answers, end to end for its most common rows.
    @Test(arguments: [
        (204, OperationState.delivered), (202, .delivered), (422, .dead), (400, .dead), (404, .dead), (409, .conflicted),
        (412, .conflicted), (401, .dead), (500, .pending), (503, .pending), (429, .pending), (501, .dead),
    ])
    func answersBecomeStates(status: Int, state: OperationState) async throws {
        let (pool, replayer) = try await away([("/notes/1", "a", [:])])
        pool.origin.next(.status(status))
        pool.comeOnline()
        #expect(await replayer.runOnce().sent == 1)
        #expect(try await states(pool) == [state])
    }

    @Test func retryAfterPausesTheWholeUpstream() async throws {
        let (pool, replayer) = try await away([("/notes/1", "a", [:]), ("/notes/1", "b", [:]), ("/notes/2", "c", [:])])
        pool.origin.answers { _ in .status(503, [.retryAfter: "120"]) }
        pool.comeOnline()
        _ = await replayer.runOnce()
        let before = pool.origin.sent.count
        pool.origin.answers { _ in .ok() }
        pool.clock.advance(by: .seconds(100))
        #expect(await replayer.runOnce().sent == 0)
        pool.clock.advance(by: .seconds(300))
        #expect(await replayer.runOnce().delivered == 3)
        #expect(pool.origin.sent.count == before + 3)
    }

    @Test func aRefusedCredentialParksAndAProvedOneWakes() async throws {
        let (pool, replayer) = try await away([("/notes/1", "a", [.authorization: "ann"]), ("/notes/2", "b", [.authorization: "bob"])])
        pool.origin.answers { $0.head.fields[.authorization] == "ann" ? .status(401) : .ok() }
        pool.comeOnline()
        _ = await replayer.runOnce()
        #expect(try await states(pool) == [.parked, .delivered])
        #expect(await replayer.runOnce().sent == 0, "not sent again with the same credential")
        pool.origin.answers { _ in .ok() }
        await pool.ask(.get, "/me", [.authorization: "ann"])
        #expect(await replayer.runOnce().delivered == 1)
        #expect(try await states(pool) == [.delivered, .delivered])
    }

    /// The upstream also refuses the live request with that credential, so the credential is not proved.
    @Test func aCredentialThatIsRefusedAgainWakesNothing() async throws {
        let (pool, replayer) = try await away([("/notes/1", "a", [.authorization: "ann"])])
        pool.origin.answers { _ in .status(401) }
        pool.comeOnline()
        _ = await replayer.runOnce()
        await pool.ask(.get, "/me", [.authorization: "ann"])
        #expect(await replayer.runOnce().sent == 0)
        #expect(try await states(pool) == [.parked])
    }

    @Test func afterARestartItWaitsForItsOwnIdentity() async throws {
        let (pool, _) = try await away([("/notes/1", "a", [.authorization: "ann"])])
        let later = Engine(
            configuration: pool.engine.configuration, cache: pool.store.cache, data: pool.store.data, origin: pool.origin, viaName: "later",
            logger: .silent, now: pool.clock.reading)
        let replayer = Replayer(engine: later)
        _ = await later.respond(Exchange(request: RequestHead(method: .get, origin: .notes, target: "/", fields: [.authorization: "bob"])))
        #expect(await replayer.runOnce().sent == 0)
        #expect(try await states(pool) == [.parked])
        _ = await later.respond(Exchange(request: RequestHead(method: .get, origin: .notes, target: "/", fields: [.authorization: "ann"])))
        #expect(await replayer.runOnce().delivered == 1)
        #expect(pool.origin.sent.last?.head.fields[.authorization] == "ann")
    }

    @Test func nobodyIsSentWithAnothersCredential() async throws {
        let people = (0..<8).map { "person-\($0)" }
        let (pool, replayer) = try await away(people.map { ("/notes/\($0)", $0, [.authorization: $0]) } + [("/notes/x", "nobody", [:])])
        pool.comeOnline()
        #expect(await replayer.runOnce().delivered == 9)
        for sent in pool.origin.sent { #expect(sent.head.fields[.authorization] == (sent.text == "nobody" ? nil : sent.text)) }
    }

    static let rules: [(IdentityRule, HTTPFields)] = [
        (.single, [:]), (.single, [.authorization: "ann"]), (.auto, [.cookie: "sid=1"]), (.cookie("sid"), [.cookie: "sid=1"]),
        (.header("X-Session"), [HTTPField.Name.session: "s1"]), (.header("X-Session"), [:]), (.auto, [:]),
    ]

    /// Under every identity rule, with and without a credential, a queued write is sent as it was received.
    @Test(arguments: Self.rules)
    func whateverTheRuleTheWriteGoesOut(rule: IdentityRule, fields: HTTPFields) async throws {
        let (pool, replayer) = try await away(to: .notes { $0.identity = rule }, [("/notes/1", "a", fields)])
        pool.comeOnline()
        #expect(await replayer.runOnce().delivered == 1)
        #expect(try await states(pool) == [.delivered])
        let sent = try #require(pool.origin.sent.first)
        for field in fields { #expect(sent.head.fields[field.name] == field.value) }
    }

    @Test func noSecretOfAnAnswerIsWritten() async throws {
        let (pool, replayer) = try await away([("/notes/1", "a", [.authorization: "Bearer bearer-5ecret"])])
        pool.origin.next(.status(200, [.setCookie: "sid=answer-5ecret", .location: "/planted"]))
        pool.comeOnline()
        #expect(await replayer.runOnce().delivered == 1)
        #expect(!pool.store.stateFiles(holding: "/planted").isEmpty, "the search works: it finds text that is on the disk")
        for secret in ["bearer-5ecret", "answer-5ecret"] { #expect(pool.store.stateFiles(holding: secret).isEmpty, "\(secret)") }
    }

    @Test func whatMayHaveArrivedIsNotSentAgainByItself() async throws {
        let pool = try ScriptedEngine()
        pool.goOffline()
        await pool.ask(.post, "/notes", body: "a")
        pool.comeOnline()
        pool.origin.next(.lost)
        let replayer = Replayer(engine: pool.engine)
        _ = await replayer.runOnce()
        #expect(try await states(pool) == [.uncertain])
        pool.comeOnline()
        pool.clock.advance(by: .hours(1))
        #expect(await replayer.runOnce().sent == 0, "`uncertain: ask` waits for a user's decision")
    }

    @Test func anOperationPastItsTimeIsNotSent() async throws {
        let (pool, replayer) = try await away([("/notes/1", "a", [.own("Expires"): "60"])])
        pool.clock.advance(by: .seconds(61))
        pool.comeOnline()
        #expect(await replayer.runOnce().sent == 0)
        let dead = try #require(try await pool.operations([.dead]).first)
        #expect(dead.reason == .expired && pool.origin.sent.isEmpty)
    }

    @Test func aPortalsAnswerIsNotADelivery() async throws {
        let (pool, replayer) = try await away([("/notes/1", "a", [:])])
        pool.origin.answers { _ in .status(302, [.location: "http://portal.test/login"]) }
        pool.comeOnline()
        _ = await replayer.runOnce()
        #expect(try await states(pool) == [.pending])
        #expect(pool.engine.reachability.machine(of: "notes")?.state == .captive)
    }

    @Test func theNextDueMomentIsReported() async throws {
        let (pool, replayer) = try await away([("/notes/1", "a", [:])])
        pool.origin.next(.status(503, [.retryAfter: "30"]))
        pool.comeOnline()
        _ = await replayer.runOnce()
        let operation = try #require(try await pool.operations().first)
        #expect(operation.nextAttemptAt >= pool.clock.now + .seconds(30))
        pool.clock.advance(by: operation.nextAttemptAt - pool.clock.now)
        #expect(await replayer.runOnce().delivered == 1)
    }

    @Test func aBlobIsDeliveredWhole() async throws {
        let large = String(repeating: "ab", count: 800_000)
        let (pool, replayer) = try await away([("/big", large, [:])])
        pool.comeOnline()
        #expect(await replayer.runOnce().delivered == 1)
        #expect(pool.origin.sent.first?.text == large)
    }

    @Test func aHundredLanesAreAllDelivered() async throws {
        let (pool, replayer) = try await away((0..<100).map { ("/notes/\($0)", "\($0)", [:]) })
        pool.comeOnline()
        #expect(await replayer.runOnce().delivered == 100)
        #expect(Set(pool.origin.sent.map(\.text)).count == 100)
    }
}

extension HTTPField.Name {
    static var session: HTTPField.Name { HTTPField.Name("X-Session") ?? .via }
}
