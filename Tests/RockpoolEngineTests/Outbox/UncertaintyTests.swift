// A write after a lost response: searched for on the upstream, never sent twice without a decision (docs/outbox.md#uncertain *uncertain*,
// §2.4; P2, P3).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct UncertaintyTests {
    /// Returns an engine with the collection read before the create, a create with a lost response, and the collection that later probes
    /// find.
    private func lost(
        _ upstream: Upstream = .declared(), before: String? = #"[{"id":1,"title":"sea"}]"#, after: String
    ) async throws -> ScriptedEngine {
        let pool = try ScriptedEngine(upstreams: [upstream])
        if let before {
            pool.origin.next(.json(before))
            await pool.ask(.get, "/notes")
            pool.clock.advance(by: .seconds(1))
        }
        pool.goOffline()
        await pool.tell(.post, "/notes", #"{"title":"new"}"#)
        pool.origin.answers { $0.head.method == .get ? .json(after) : .status(500) }
        await pool.replay(.lost)
        #expect(try await pool.states() == [.uncertain])
        return pool
    }

    /// Runs all probes of the operation and returns it.
    private func look(_ pool: ScriptedEngine) async throws -> QueuedWrite {
        for _ in 0..<6 {
            pool.clock.advance(by: .seconds(20))
            await pool.replay()
        }
        return try #require(try await pool.all().first)
    }

    private func posts(_ pool: ScriptedEngine) -> Int { pool.origin.lines.filter { $0 == "POST /notes" }.count }

    @Test func whatIsFoundIsDeliveredAndMapped() async throws {
        let pool = try await lost(after: #"[{"id":1,"title":"sea"},{"id":7,"title":"new","at":"noon"}]"#)
        let operation = try await look(pool)
        #expect(operation.state == .delivered && operation.reason == .probed && operation.serverID == "7")
        #expect(posts(pool) == 1)
        let id = try #require(operation.localID)
        #expect(await pool.ask(.get, "/notes/\(id)")["Content-Location"] == "http://api.test/notes/7")
    }

    static let undecided: [(String?, String)] = [
        (#"[{"id":1,"title":"sea"}]"#, #"[{"id":7,"title":"new"},{"id":8,"title":"new"}]"#),
        (#"[{"id":7,"title":"new"}]"#, #"[{"id":7,"title":"new"}]"#),
        (#"[]"#, #"[{"id":7,"title":"other"}]"#), (#"[]"#, "{}"), (#"[]"#, "no JSON"),
        // The earlier content is unknown: any item may have been created by another client.
        (nil, #"[{"id":7,"title":"new"}]"#),
    ]

    @Test(arguments: undecided)
    func whatCannotBeToldStays(before: String?, after: String) async throws {
        let pool = try await lost(before: before, after: after)
        let operation = try await look(pool)
        #expect(operation.state == .uncertain && operation.serverID == nil && operation.probes == 3)
        #expect(posts(pool) == 1)
    }

    @Test(arguments: [(QueueSettings.Uncertain.ask, OperationState.uncertain, 1), (.retry, .delivered, 2), (.drop, .cancelled, 1)])
    func thenItsPolicyApplies(policy: QueueSettings.Uncertain, state: OperationState, sendings: Int) async throws {
        let pool = try await lost(.declared { $0.queue.uncertain = policy }, after: "[]")
        pool.origin.answers { $0.head.method == .get ? .json("[]") : .created(9) }
        #expect(try await look(pool).state == state)
        #expect(posts(pool) == sendings)
    }

    /// A later write has passed it: the copy with that one shows what has become of both.
    @Test func whatWasPassedIsNotShownOverTheServersState() async throws {
        let pool = try ScriptedEngine(upstreams: [.declared()])
        pool.origin.next(.json(#"{"id":1,"title":"sea"}"#))
        await pool.ask(.get, "/notes/1")
        pool.clock.advance(by: .seconds(1))
        pool.goOffline()
        await pool.tell(.patch, "/notes/1", #"{"title":"lost"}"#)
        pool.origin.answers { $0.head.method == .get ? .json(#"{"id":1,"title":"sea"}"#) : .status(500) }
        await pool.replay(.lost)
        #expect(try await look(pool).state == .uncertain)
        #expect(await pool.ask(.get, "/notes/1").json["title"]?.string == "lost")
        pool.origin.answers { _ in .json(#"{"id":1,"title":"later"}"#) }
        pool.comeOnline()
        #expect(await pool.ask(.patch, "/notes/1", body: #"{"title":"later"}"#).status == 200)
        pool.clock.advance(by: .hours(1))
        let reply = await pool.ask(.get, "/notes/1")
        #expect(reply.json["title"]?.string == "later" && reply["Rockpool-State"] == "uncertain", "\(reply.status) \(reply.body)")
    }

    /// An item created by another operation of the outbox is attributed to that operation.
    @Test func anothersCreateIsNotMistakenForIt() async throws {
        let pool = try ScriptedEngine(upstreams: [.declared()])
        pool.origin.next(.json("[]"))
        await pool.ask(.get, "/notes")
        pool.clock.advance(by: .seconds(1))
        pool.goOffline()
        for _ in 0..<2 { await pool.tell(.post, "/notes", #"{"title":"new"}"#) }
        pool.origin.answers { $0.head.method == .get ? .json(#"[{"id":7,"title":"new"}]"#) : .status(500) }
        await pool.replay(.lost, .created(7))
        _ = try await look(pool)
        #expect(try await pool.all().map(\.serverID).compactMap(\.self) == ["7"])
        #expect(try await pool.states().filter { $0 == .uncertain }.count == 1)
    }

    /// A live create after the copy was fetched: the item existed before, although the copy does not contain it.
    @Test func whatALiveWriteMadeIsNotMistakenForIt() async throws {
        let pool = try ScriptedEngine(upstreams: [.declared()])
        pool.origin.next(.json("[]"), .created(7))
        await pool.ask(.get, "/notes")
        pool.clock.advance(by: .seconds(1))
        await pool.tell(.post, "/notes", #"{"title":"new"}"#)
        pool.clock.advance(by: .seconds(1))
        pool.goOffline()
        await pool.tell(.post, "/notes", #"{"title":"new"}"#)
        pool.origin.answers { $0.head.method == .get ? .json(#"[{"id":7,"title":"new"}]"#) : .status(500) }
        await pool.replay(.lost)
        #expect(try await look(pool).state == .uncertain)
    }

    @Test func withoutAResourceNothingIsAsked() async throws {
        let pool = try ScriptedEngine()
        pool.goOffline()
        await pool.tell(.post, "/notes", "{}")
        await pool.replay(.lost)
        let operation = try await look(pool)
        #expect(operation.state == .uncertain)
        #expect(pool.origin.lines == ["POST /notes"])
    }

    /// A live write overtook what a crash had interrupted and Rockpool sends again by itself: the older one took effect last.
    @Test func whatIsSentAgainKeepsItsPlace() async throws {
        let pool = try ScriptedEngine(upstreams: [.notes { $0.idempotency.honoured = .yes }])
        pool.goOffline()
        await pool.tell(.post, "/log", "1")
        let first = try #require(try await pool.all().first)
        _ = try await pool.engine.data.lease(id: first.id, now: pool.clock.now)
        let crashed = Disposition(state: .uncertain, reason: .crashed, nextAttemptAt: pool.clock.now, countsAsAnswered: false)
        _ = try await pool.engine.data.finish(
            id: first.id, disposition: crashed, result: nil, attempt: AttemptRecord(sent: .maybe), now: pool.clock.now)
        pool.comeOnline()
        let prefer = try #require(HTTPField.Name("Prefer"))
        #expect(await pool.tell(.post, "/log", "2", [prefer: "wait=0"]).status == 202)
        #expect(pool.origin.sent.isEmpty)
        await pool.replay()
        #expect(pool.origin.sent.map(\.text) == ["1", "2"])
    }

    @Test(arguments: [
        (#"{"id":1,"title":"mine"}"#, "\"v2\"", OperationState.delivered, 2),
        // The version that its client saw is known: with that condition a resend can take effect at most once.
        (#"{"id":1,"title":"sea"}"#, "\"v1\"", .delivered, 2),
        (#"{"id":1,"title":"theirs"}"#, "\"v2\"", .delivered, 2),
    ])
    func aPatchIsLookedFor(now: String, etag: String, state: OperationState, sendings: Int) async throws {
        let pool = try await ScriptedEngine.holdingOne()
        await pool.tell(.patch, "/notes/1", #"{"title":"mine"}"#)
        pool.origin.answers { $0.head.method == .get ? .json(now, etag: etag) : .status(204) }
        await pool.replay(.lost)
        #expect(try await look(pool).state == state)
        #expect(pool.origin.lines.filter { $0 == "PATCH /notes/1" }.count == sendings)
    }

    /// The response was lost, and the resend is refused because the write itself has already changed the resource.
    @Test(arguments: [(#"{"id":1,"title":"mine"}"#, OperationState.delivered), (#"{"id":1,"title":"theirs"}"#, .conflicted)])
    func ourOwnWriteIsNoConflict(now: String, state: OperationState) async throws {
        let pool = try await ScriptedEngine.holdingOne()
        await pool.tell(.put, "/notes/1", #"{"id":1,"title":"mine"}"#)
        await pool.replay(.lost)
        #expect(try await pool.states() == [.pending])
        pool.clock.advance(by: .hours(1))
        pool.origin.answers { $0.head.method == .get ? .json(now, etag: "\"v2\"") : .status(412) }
        await pool.replay()
        #expect(try await pool.states() == [state])
    }

    @Test func aConflictWithoutALostAnswerIsOne() async throws {
        let pool = try await ScriptedEngine.holdingOne()
        await pool.tell(.put, "/notes/1", #"{"id":1,"title":"mine"}"#)
        pool.origin.answers { $0.head.method == .get ? .json(#"{"id":1,"title":"mine"}"#) : .status(412) }
        await pool.replay()
        #expect(try await pool.states() == [.conflicted])
        #expect(pool.origin.sent.count == 2, "no probe was sent")
    }

    @Test func theLookIsItsOwnersWithNothingOfTheWrite() async throws {
        let pool = try ScriptedEngine(upstreams: [.declared()])
        pool.goOffline()
        await pool.tell(.post, "/notes?notify=1", "{}", [.authorization: "ann"])
        await pool.replay(.lost)
        _ = try await look(pool)
        let asked = pool.origin.sent.filter { $0.head.method == .get }
        #expect(asked.count == 3)
        for question in asked {
            #expect(question.line == "GET /notes" && question.head.fields[.authorization] == "ann" && question.body.isEmpty)
            #expect(question.head.fields[.contentType] == nil && question.head.fields[.idempotencyKey] == nil)
        }
    }
}
