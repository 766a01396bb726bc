// Replay: the order of requests, substituted ids and conditions, followed redirects, held lanes (docs/outbox.md#answers,
// docs/outbox.md#keys–§1.9).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import ServiceLifecycle
import Testing

@Suite(.timeLimit(.minutes(1)))
struct DeliveryTests {
    // MARK: local ids

    /// Local ids in path, query, body and header are substituted at replay and in live requests.
    @Test(arguments: [true, false])
    func localIDsBecomeTheUpstreamsWhereverTheyStand(isLive: Bool) async throws {
        let pool = try await ScriptedEngine.holdingOne()
        let id = try #require(await pool.tell(.post, "/notes", "{}")["Rockpool-Local-Id"])
        let link = try #require(HTTPField.Name("X-Parent"))
        func refer() async -> WholeReply {
            await pool.tell(.put, "/notes/\(id)/comments/3?about=\(id)", #"{"note":"\#(id)"}"#, [link: id])
        }
        if isLive {
            await pool.replay(.created(7))
            #expect(await refer().status == 200)
        } else {
            #expect(await refer().status == 201)
            await pool.replay(.created(7), .status(204))
        }
        let sent = try #require(pool.origin.sent.last)
        #expect(sent.line == "PUT /notes/7/comments/3?about=7" && sent.text == #"{"note":7}"# && sent.head.fields[link] == "7")
        #expect(pool.origin.sent.allSatisfy { !LocalIDScan.mayOccur(head: $0.head, body: Array($0.text.utf8)) })
    }

    @Test func aRedirectAfterACreateNamesTheServersID() async throws {
        let pool = try await ScriptedEngine.holdingOne()
        let id = try #require(await pool.tell(.post, "/notes", "{}")["Rockpool-Local-Id"])
        await pool.tell(.put, "/notes/\(id)", #"{"title":"a"}"#)
        await pool.replay(.status(303, [.location: "/notes/7"]), .status(204))
        #expect(pool.origin.lines.suffix(2) == ["POST /notes", "PUT /notes/7"])
    }

    @Test func anEditOfAnUnsentCreateIsSentWithIt() async throws {
        let pool = try await ScriptedEngine.holdingOne(.declared { $0.queue.squash = .safe })
        let id = try #require(await pool.tell(.post, "/notes", #"{"title":"a"}"#)["Rockpool-Local-Id"])
        let edit = await pool.tell(.patch, "/notes/\(id)", #"{"done":true}"#)
        #expect(edit.status == 200 && edit.json["done"] == true)
        #expect(try await pool.states() == [.pending, .superseded])
        #expect(await pool.ask(.get, "/notes/\(id)").json["done"] == true)
        await pool.replay(.created(7))
        let sent = try #require(pool.origin.sent.last)
        #expect(sent.line == "POST /notes" && sent.text == #"{"title":"a","done":true}"#)
    }

    @Test func aDeletedUnsentCreateIsNeverSent() async throws {
        let pool = try await ScriptedEngine.holdingOne(.declared { $0.queue.squash = .safe })
        let id = try #require(await pool.tell(.post, "/notes", #"{"title":"a"}"#)["Rockpool-Local-Id"])
        #expect(await pool.tell(.delete, "/notes/\(id)").status == 204)
        #expect(try await pool.states() == [.cancelled, .cancelled])
        #expect(await pool.ask(.get, "/notes/\(id)").status == 404)
        let sent = pool.origin.sent.count
        await pool.replay()
        #expect(pool.origin.sent.count == sent)
    }

    /// A cookie belongs to the credential, and no local id reaches the upstream in it.
    @Test func aLocalIDInACookieIsReplaced() async throws {
        let pool = try await ScriptedEngine.holdingOne()
        let id = try #require(await pool.tell(.post, "/notes", "{}")["Rockpool-Local-Id"])
        await pool.replay(.created(7))
        pool.goOffline()
        await pool.tell(.put, "/notes/9", "{}", [.cookie: "sid=1; draft=\(id)"])
        await pool.replay(.status(204))
        let put = try #require(pool.origin.sent.last { $0.head.method == .put })
        #expect(put.head.fields[.cookie] == "sid=1; draft=7", "\(put.head.fields)")
    }

    @Test func nestedCreatesGoInOrder() async throws {
        let pool = try await ScriptedEngine.holdingOne()
        let note = try #require(await pool.tell(.post, "/notes", "{}")["Rockpool-Local-Id"])
        let comment = try #require(await pool.tell(.post, "/notes/\(note)/comments", "{}", [.own("Priority"): "-100"])["Rockpool-Local-Id"])
        await pool.tell(.patch, "/notes/\(note)/comments/\(comment)", #"{"text":"a"}"#, [.own("Priority"): "-100"])
        #expect(await pool.replay(.created(7), .created(8, in: "/notes/7/comments"), .status(204)).delivered == 3)
        #expect(pool.origin.lines.suffix(3) == ["POST /notes", "POST /notes/7/comments", "PATCH /notes/7/comments/8"])
    }

    @Test func whatNeedsADeadCreateIsNotSent() async throws {
        let pool = try await ScriptedEngine.holdingOne()
        let note = try #require(await pool.tell(.post, "/notes", "{}")["Rockpool-Local-Id"])
        await pool.tell(.post, "/notes/\(note)/comments", "{}")
        await pool.replay(.status(422))
        #expect(try await pool.states() == [.dead, .pending])
        #expect(pool.origin.sent.count == 2)
    }

    @Test func aCreateWithoutAnIDInItsAnswerLeavesWhatNeedsItUnmapped() async throws {
        let pool = try await ScriptedEngine.holdingOne()
        let note = try #require(await pool.tell(.post, "/notes", "{}")["Rockpool-Local-Id"])
        await pool.tell(.put, "/notes/\(note)", "{}")
        pool.origin.answers { _ in .status(201) }
        await pool.replay()
        #expect(try await pool.all().map(\.reason) == [nil, .unmapped])
        #expect(pool.origin.sent.allSatisfy { !LocalIDScan.mayOccur(head: $0.head, body: []) })
    }

    // MARK: conditions

    private func conditions(_ pool: ScriptedEngine) -> [String?] {
        pool.origin.sent.filter { $0.head.method != .get }.map { $0.head.fields[.ifMatch] }
    }

    @Test(
        arguments: [
            ("\"v1\"", "etag", [:], "\"v1\""), ("W/\"v1\"", "etag", [:], nil), (nil, "etag", [:], nil), ("\"v1\"", "/version", [:], nil),
            ("\"v1\"", "etag", [.ifMatch: "\"v0\""], "\"v0\""), ("\"v1\"", "etag", [.ifMatch: "*"], "*"),
            ("\"v1\"", "etag", [.ifNoneMatch: "*"], nil),
        ] as [(String?, String, HTTPFields, String?)])
    func theBaseIsTheCondition(etag: String?, version: String, fields: HTTPFields, condition: String?) async throws {
        let pool = try await ScriptedEngine.holdingOne(.declared(.accepted, version: version), etag: etag)
        await pool.tell(.put, "/notes/1", #"{"id":1}"#, fields)
        await pool.replay(.status(204))
        #expect(conditions(pool) == [condition])
    }

    @Test func aCopyThatAnotherWriteMadeOldIsNoBase() async throws {
        let pool = try await ScriptedEngine.holdingOne()
        pool.comeOnline()
        #expect(await pool.tell(.put, "/notes/1", "{}").status == 200)
        pool.goOffline()
        pool.clock.advance(by: .seconds(1))
        await pool.tell(.put, "/notes/1", #"{"id":1}"#)
        await pool.replay(.status(204))
        #expect(conditions(pool).last == .some(nil))
    }

    /// Each write is based on the result of the previous one, whichever of its ETags the client sends.
    @Test(arguments: [[:], [.ifMatch: "\"loc-1\""], [.ifMatch: "\"loc-1-v1\""]] as [HTTPFields])
    func aChainIsCarriedForward(_ second: HTTPFields) async throws {
        let pool = try await ScriptedEngine.holdingOne()
        await pool.tell(.put, "/notes/1", #"{"n":1}"#)
        await pool.tell(.put, "/notes/1", #"{"n":2}"#, second)
        await pool.replay(.json("{}", etag: "\"v2\""), .json("{}", etag: "\"v3\""))
        #expect(conditions(pool) == ["\"v1\"", "\"v2\""])
        #expect(await pool.tell(.put, "/notes/1", #"{"n":3}"#, [.ifMatch: "\"loc-2-v1\""]).status == 200)
        #expect(conditions(pool).last == "\"v3\"", "a live write is based on the last delivery too")
    }

    /// After a write is discarded, the next one takes over its base, so that it is not sent without a condition.
    @Test func aDiscardedWriteLeavesItsBaseToTheNext() async throws {
        let pool = try await ScriptedEngine.holdingOne()
        let first = try #require(await pool.tell(.put, "/notes/1", #"{"n":1}"#)["Rockpool-Operation"])
        await pool.tell(.put, "/notes/1", #"{"n":2}"#)
        _ = try await pool.engine.commands.steer(.cancel, id: first)
        await pool.replay(.status(204))
        #expect(conditions(pool) == ["\"v1\""])
    }

    // MARK: order requested by the client

    @Test(arguments: ["Depends-On", "Group"])
    func whatAClientAsksToWaitForGoesFirst(field: String) async throws {
        let pool = try await ScriptedEngine.holdingOne()
        let first = await pool.tell(.put, "/other/1", #"{"n":1}"#, field == "Group" ? [.own("Group"): "g"] : [.own("Priority"): "100"])
        let value = field == "Group" ? "g" : try #require(first["Rockpool-Operation"])
        await pool.tell(.put, "/other/2", #"{"n":2}"#, [.own(field): value, .own("Priority"): "-100"])
        await pool.replay(.status(503), .status(204), .status(204))
        #expect(pool.origin.lines.suffix(1) == ["PUT /other/1"], "the second waits for the first")
        #expect(await pool.tell(.put, "/other/3", "{}", [.own(field): value]).status == 202, "queued even while online")
        pool.clock.advance(by: .hours(1))
        #expect(await pool.replay().delivered == 3)
        #expect(Array(pool.origin.lines.suffix(3)).first == "PUT /other/1")
    }

    @Test(arguments: [true, false])
    func anUnknownOperationCannotBeWaitedFor(isLive: Bool) async throws {
        let pool = try await ScriptedEngine.holdingOne()
        if isLive { pool.comeOnline() }
        #expect(await pool.tell(.post, "/notes", "{}", [.own("Depends-On"): "nobody"]).status == 400)
        #expect(try await pool.all().isEmpty)
        #expect(pool.origin.sent.count == 1)
    }

    // MARK: keys

    @Test func aKeyBeingSentIsToldSo() async throws {
        let pool = try ScriptedEngine(upstreams: [.declared()])
        let gate = Gate()
        pool.origin.next(.held(gate, .created(7)))
        let key: HTTPFields = [.idempotencyKey: "k"]
        async let first = pool.tell(.post, "/notes", "{}", key)
        try await eventually("the first is sent") { pool.origin.sent.count == 1 }
        let second = await pool.tell(.post, "/notes", "{}", key)
        #expect(second.status == 409 && second["Retry-After"] == "1")
        #expect(await pool.tell(.post, "/notes", "[]", key).status == 422)
        #expect(await pool.tell(.post, "/notes", "{}", [.idempotencyKey: "other"]).status == 200)
        gate.open()
        #expect(await first.status == 201)
        #expect(pool.origin.sent.count == 2)
    }

    /// Of several simultaneous requests with one key, exactly one is sent.
    @Test func aKeyIsSentOnceAtATime() async throws {
        for _ in 0..<20 {
            let pool = try ScriptedEngine(upstreams: [.declared()])
            let gate = Gate()
            pool.origin.answers { _ in .held(gate, .created(7)) }
            let told = await withTaskGroup(of: Int.self) { group in
                for _ in 0..<8 {
                    group.addTask {
                        defer { gate.open() }
                        return await pool.tell(.post, "/notes", "{}", [.idempotencyKey: "k"]).status
                    }
                }
                while pool.origin.sent.isEmpty { await Task.yield() }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(told.contains(409) && told.allSatisfy { $0 == 201 || $0 == 409 })
        }
    }

    // MARK: redirects

    @Test(arguments: [301, 307, 308])
    func aRedirectThatKeepsTheMethodIsFollowed(status: Int) async throws {
        let pool = try await ScriptedEngine.holdingOne()
        await pool.tell(.put, "/notes/1", #"{"n":1}"#)
        await pool.replay(.status(status, [.location: "/v2/notes/1"]), .status(204))
        #expect(pool.origin.lines.suffix(2) == ["PUT /notes/1", "PUT /v2/notes/1"])
        #expect(Set(pool.origin.sent.suffix(2).map(\.text)) == [#"{"n":1}"#])
        #expect(Set(pool.origin.sent.suffix(2).map { $0.head.fields[.idempotencyKey] }).count == 1)
        #expect(try await pool.states() == [.delivered])
    }

    @Test func onlyThreeAndNotToOthers() async throws {
        let pool = try await ScriptedEngine.holdingOne()
        await pool.tell(.put, "/other/1", "{}")
        await pool.tell(.put, "/other/2", "{}")
        pool.origin.answers {
            $0.head.target.hasPrefix("/other/1")
                ? .status(308, [.location: $0.head.target + "x"]) : .status(308, [.location: "http://elsewhere.test/"])
        }
        await pool.replay()
        #expect(pool.origin.lines.filter { $0.hasPrefix("PUT /other/1") }.count == 4)
        #expect(pool.origin.lines.filter { $0.hasPrefix("PUT /other/2") }.count == 1)
        // A redirect to another host may come from a captive portal: the write is not counted as done, and a probe decides.
        #expect(try await pool.all().map(\.state) == [.parked, .pending])
        #expect(pool.origin.sent.allSatisfy { $0.head.origin == .notes })
    }

    // MARK: attempts that may still execute

    /// An attempt with a lost response may still execute: no queued or live write of its lane is sent before that is impossible.
    @Test func aZombieHoldsItsLaneLiveWritesToo() async throws {
        let pool = try ScriptedEngine(upstreams: [.notes()])
        pool.goOffline()
        await pool.ask(.put, "/notes/1", body: "first")
        await pool.replay(.lost)
        pool.clock.advance(by: .seconds(10))
        #expect(await pool.replay(.status(204)).delivered == 1)
        #expect(await pool.ask(.put, "/notes/1", [.prefer: "wait=0"], body: "second")["Rockpool-State"] == "pending")
        #expect(await pool.ask(.put, "/notes/2", [.prefer: "wait=0"], body: "apart").status == 200, "a write of another lane is sent")
        #expect(await pool.replay().sent == 0)
        pool.clock.advance(by: .seconds(30))
        #expect(await pool.replay().delivered == 1)
        #expect(pool.origin.sent.map(\.text) == ["first", "first", "apart", "second"])
        #expect(await pool.ask(.put, "/notes/1", [.prefer: "wait=0"], body: "third").status == 200)
    }

    /// The same for a live write that waited for its lane: when the uncertain operation ends, the lane is still held.
    @Test func aLiveWriteThatWaitedForItsLaneFindsTheZombie() async throws {
        let pool = try ScriptedEngine(upstreams: [.notes()])
        pool.goOffline()
        await pool.ask(.put, "/notes/1", body: "first")
        await pool.replay(.lost)
        pool.clock.advance(by: .seconds(10))
        let (gate, sent) = (Gate(), pool.origin.sent.count)
        async let replayed = pool.replay(.held(gate, .status(204)))
        try await eventually("it is sent again") { pool.origin.sent.count == sent + 1 }
        async let second = pool.ask(.put, "/notes/1", [.prefer: "wait=10"], body: "second")
        for _ in 0..<1000 { await Task.yield() }
        gate.open()
        #expect(await replayed.delivered == 1)
        #expect(await second["Rockpool-State"] == "pending")
        #expect(pool.origin.sent.map(\.text) == ["first", "first"])
    }

    // MARK: shutdown

    /// At shutdown a sent request is completed and recorded with its outcome, and no new one is sent.
    @Test(arguments: [ScriptedAnswer.created(7), .status(201)])
    func shutdownEndsWhatWasSent(_ answer: ScriptedAnswer) async throws {
        let pool = try await ScriptedEngine.holdingOne()
        await pool.tell(.post, "/notes", "{}")
        let gate = Gate()
        pool.origin.next(.held(gate, answer))
        pool.comeOnline()
        let replayer = Replayer(engine: pool.engine)
        let group = ServiceGroup(configuration: .init(services: [.init(service: replayer)], logger: .silent))
        async let ran: Void = group.run()
        try await eventually("it is sent") { pool.origin.sent.contains { $0.line == "POST /notes" } }
        await group.triggerGracefulShutdown()
        await pool.tell(.put, "/other/1", "{}", [.prefer: "respond-async"])
        gate.open()
        try await ran
        #expect(try await pool.states() == [.delivered, .pending])
        #expect(!pool.origin.lines.contains("PUT /other/1"))
    }
}
