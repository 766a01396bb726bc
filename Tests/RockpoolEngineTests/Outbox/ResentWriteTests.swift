// Writes that are refused by their own effect, because an earlier sending of them was applied (docs/outbox.md#answers).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct ResentWriteTests {
    /// The upstream counts the changes of each item in a member of its own.
    private static let before = #"{"id":1,"a":0,"rev":1}"#
    private static let after = #"{"id":1,"a":1,"rev":2}"#

    /// Returns an engine with an upstream that has applied the change and refuses each repetition.
    private func refusing(_ response: Resource.OfflineResponse) async throws -> ScriptedEngine {
        let pool = try ScriptedEngine(upstreams: [.declared(response)])
        pool.origin.next(.json(Self.before, etag: "\"v1\""))
        await pool.ask(.get, "/notes/1")
        pool.clock.advance(by: .seconds(1))
        pool.origin.answers { $0.head.method == .get ? .json(Self.after, etag: "\"v2\"") : .status(412) }
        return pool
    }

    private func expectDelivered(_ pool: ScriptedEngine) async throws {
        pool.clock.advance(by: .seconds(20))
        await pool.replay()
        let operation = try #require(try await pool.all().first)
        #expect(operation.state == .delivered && operation.reason == .probed)
        pool.goOffline()
        let shown = await pool.ask(.get, "/notes/1")
        #expect(shown.body == Self.after && shown["Rockpool-Dirty"] == nil, "\(shown.head.fields)")
    }

    @Test(arguments: [(Resource.OfflineResponse.optimistic, 200), (.accepted, 202)])
    func aLiveWriteThatIsSentTwiceIsNoConflict(response: Resource.OfflineResponse, status: Int) async throws {
        let pool = try await refusing(response)
        pool.origin.next(.again(.status(412)))
        let reply = await pool.tell(.put, "/notes/1", #"{"id":1,"a":1}"#)
        #expect(reply.status == status && reply["Rockpool-State"] == "pending")
        try await expectDelivered(pool)
    }

    @Test func aQueuedWriteThatIsSentTwiceIsNoConflict() async throws {
        let pool = try await refusing(.optimistic)
        pool.goOffline()
        await pool.tell(.put, "/notes/1", #"{"id":1,"a":1}"#)
        await pool.replay(.again(.status(412)))
        #expect(try await pool.states() == [.pending])
        try await expectDelivered(pool)
    }

    @Test func aRefusalOfTheOnlySendingIsOne() async throws {
        let pool = try await refusing(.optimistic)
        pool.goOffline()
        await pool.tell(.put, "/notes/1", #"{"id":1,"a":1}"#)
        await pool.replay(.status(412))
        #expect(try await pool.states() == [.conflicted])
    }
}
