// The state of an item after a write without an answer, which was lost or broke off: one client does not conflict with itself
// (docs/outbox.md#effects, docs/outbox.md#session-guarantees).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct UnknownAnswerTests {
    /// An upstream without ETags, which counts the changes of each item in a member of its own.
    private static let before = #"{"id":1,"a":0,"b":0,"rev":1}"#
    private static let after = #"{"id":1,"a":1,"b":0,"rev":2}"#
    private static let brokeOff = ScriptedAnswer.broken(
        ResponseHead(status: 200, fields: [.contentType: "application/json"]), [#"{"id"#],
        TransferFailure(kind: .reset, sent: .yes, detail: "cut off"))

    /// Returns an engine that is away again after a change of the item, with that answer to it.
    private func changed(_ answer: ScriptedAnswer, shown: ScriptedAnswer) async throws -> ScriptedEngine {
        let pool = try await ScriptedEngine.holdingOne(body: Self.before, etag: nil)
        #expect(await pool.tell(.patch, "/notes/1", #"{"a":1}"#).status == 200)
        pool.origin.next(.json(Self.before))  // the read before it
        pool.origin.answers { _ in shown }
        await pool.replay(answer)
        pool.clock.advance(by: .seconds(20))
        await pool.replay()
        #expect(try await pool.states() == [.delivered])
        pool.clock.advance(by: .seconds(1))
        pool.goOffline()
        return pool
    }

    /// Changes the item again, with what the client knows of it.
    private func changeAgain(_ method: HTTPRequest.Method, _ pool: ScriptedEngine) async throws {
        #expect([200, 202, 204].contains(await pool.tell(method, "/notes/1", method == .put ? #"{"id":1,"a":1,"b":2}"# : nil).status))
        pool.origin.answers { $0.head.method == .get ? .json(Self.after) : .status(204) }
        pool.clock.advance(by: .minutes(1))  // the lane of a lost attempt
        await pool.replay()
        #expect(try await pool.states() == [.delivered, .delivered])
        #expect(pool.origin.sent.last?.head.method == method)
    }

    @Test(arguments: [ScriptedAnswer.lost, brokeOff], [HTTPRequest.Method.put, .delete])
    func whatAReadShowsIsTheCopyAndTheBase(answer: ScriptedAnswer, method: HTTPRequest.Method) async throws {
        let pool = try await changed(answer, shown: .json(Self.after))
        #expect(await pool.ask(.get, "/notes/1").body == Self.after)
        try await changeAgain(method, pool)
    }

    /// The read before the resend shows the write's own effect.
    @Test func aResendThatIsNotNeededIsNoConflict() async throws {
        let upstream = Upstream.declared { $0.idempotency.honoured = .yes }
        let pool = try await ScriptedEngine.holdingOne(upstream, body: Self.before, etag: nil)
        await pool.tell(.patch, "/notes/1", #"{"a":1}"#)
        await pool.tell(.delete, "/notes/1")
        await pool.replay(.json(Self.before), .lost)
        #expect(try await pool.states() == [.pending, .pending])
        pool.clock.advance(by: .minutes(1))
        pool.origin.answers { $0.head.method == .get ? .json(Self.after) : .status(204) }
        await pool.replay()
        #expect(try await pool.states() == [.delivered, .delivered])
        #expect(pool.origin.lines.filter { $0 == "PATCH /notes/1" }.count == 1)
    }

    @Test func aLiveWriteIsReadToo() async throws {
        let pool = try await ScriptedEngine.holdingOne(body: Self.before, etag: nil)
        pool.comeOnline()
        pool.origin.next(Self.brokeOff, .json(Self.after))
        #expect(await pool.tell(.patch, "/notes/1", #"{"a":1}"#).failure != nil)
        pool.clock.advance(by: .seconds(1))
        pool.goOffline()
        #expect(await pool.ask(.get, "/notes/1").body == Self.after)
    }

    @Test(arguments: [HTTPRequest.Method.put, .delete])
    func withoutAReadNothingIsCompared(method: HTTPRequest.Method) async throws {
        let pool = try await changed(Self.brokeOff, shown: .lost)
        #expect(await pool.ask(.get, "/notes/1").json.object?["a"] == .number(JSONNumber(1)))
        try await changeAgain(method, pool)
    }

    /// The item that a lost create has made is read at its own URL: lists may show less of it.
    @Test func aCreateThatIsFoundIsRead() async throws {
        let pool = try ScriptedEngine(upstreams: [.declared()])
        pool.origin.next(.json("[]"))
        await pool.ask(.get, "/notes")
        pool.clock.advance(by: .seconds(1))
        pool.goOffline()
        await pool.tell(.post, "/notes", #"{"a":0}"#)
        pool.origin.answers { $0.head.target == "/notes" ? .json(#"[{"id":1,"a":0}]"#) : .json(Self.before) }
        await pool.replay(.lost)
        pool.clock.advance(by: .seconds(20))
        await pool.replay()
        #expect(try await pool.states() == [.delivered])
        pool.clock.advance(by: .seconds(1))
        pool.goOffline()
        #expect(await pool.ask(.get, "/notes/1").body == Self.before)
        #expect(await pool.tell(.delete, "/notes/1").status == 204)
        pool.clock.advance(by: .minutes(1))
        await pool.replay(.json(Self.before), .status(204))
        #expect(try await pool.states() == [.delivered, .delivered])
    }
}
