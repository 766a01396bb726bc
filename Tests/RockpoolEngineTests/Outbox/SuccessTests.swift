// Answers of 2xx that are no success, for queued and for live writes (docs/outbox.md#no-success).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct SuccessTests {
    private static let json: HTTPFields = [.contentType: "application/json"]
    private static let note = #"{"id":"1","title":"old"}"#

    private func pool(_ rule: SuccessRule? = SuccessRule(pointer: "/success", equals: true)) async throws -> ScriptedEngine {
        let upstream = Upstream.notes {
            $0.resources = [Resource(collection: "/notes", item: "/notes/{id}")]
            $0.resources[0].success = rule
        }
        let pool = try ScriptedEngine(upstreams: [upstream]) { _ in
            .ok(Self.note, [.contentType: "application/json", .cacheControl: "no-cache"])
        }
        #expect(await pool.ask(.get, "/notes/1").body == Self.note)
        return pool
    }

    private func put(_ pool: ScriptedEngine) async -> WholeReply {
        await pool.ask(.put, "/notes/1", [.contentType: "application/json", .acceptEncoding: "gzip"], body: #"{"id":"1","title":"new"}"#)
    }

    @Test func aQueuedWriteThatIsNoSuccessIsDeadWithItsAnswer() async throws {
        let pool = try await pool()
        pool.goOffline()
        #expect(await put(pool).status == 202)
        // The read before a write that carries no version.
        pool.origin.next(.status(200, Self.json, Self.note))
        pool.origin.next(.status(200, Self.json, #"{"success":false}"#))
        pool.comeOnline()
        _ = await Replayer(engine: pool.engine).runOnce()
        let operation = try #require(try await pool.operations(Set(OperationState.allCases)).first)
        #expect(operation.state == .dead && operation.reason == .rejected)
        #expect(operation.lastError == "200: /success of the answer is not true")
        #expect(operation.result.map { String(decoding: $0.body, as: UTF8.self) } == #"{"success":false}"#)
        #expect(pool.origin.sent.last?.head.fields[.acceptEncoding] == "identity")
    }

    @Test(arguments: [(#"{"success":false}"#, "old"), (#"{"success":true}"#, "new")])
    func aLiveWriteIsPassedOnAndLeavesAnEffectOnlyAsASuccess(_ answer: String, _ title: String) async throws {
        let pool = try await pool()
        pool.origin.next(.status(200, Self.json, answer))
        let reply = await put(pool)
        #expect(reply.status == 200 && reply.body == answer)
        pool.goOffline()
        #expect(await pool.ask(.get, "/notes/1").json["title"]?.string == title)
    }

    @Test func aPartialFailureMarksTheCopyAsOlder() async throws {
        let pool = try await pool(nil)
        pool.origin.next(.status(207, Self.json, #"{"results":[{"status":422}]}"#))
        #expect(await put(pool).status == 207)
        pool.goOffline()
        let reply = await pool.ask(.get, "/notes/1")
        #expect(reply.json["title"] == "old" && reply["Rockpool-Dirty"] == "1")
    }

    @Test func anAnswerAboutSomethingElseIsNotedAndNeverTheCopy() async throws {
        let pool = try await pool(nil)
        pool.goOffline()
        #expect(await put(pool).status == 202)
        pool.origin.next(.status(200, Self.json, Self.note))
        pool.origin.next(.status(200, Self.json, #"{"queued":"later"}"#))
        pool.comeOnline()
        _ = await Replayer(engine: pool.engine).runOnce()
        let line = try #require(try await pool.store.data.log(before: .max, limit: 1).first)
        #expect(line.event == "delivered" && line.detail == "200: the answer does not describe the entity")
        pool.goOffline()
        #expect(await pool.ask(.get, "/notes/1").json["title"] == "new")
    }
}
