// Reads of the upstream that break off: a conflict is decided by none of them (docs/outbox.md#strategies).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct BrokenDecisionTests {
    @Test(arguments: [[], [#"{"id":1,"ti"#]])
    func aReadThatBreaksOffIsMadeAgain(pieces: [String]) async throws {
        let pool = try await ScriptedEngine.holdingOne()
        await pool.tell(.patch, "/notes/1", #"{"title":"mine"}"#)
        let head = ResponseHead(status: 200, fields: [.contentType: "application/json", .eTag: "\"v2\""])
        await pool.replay(.status(412))
        let service = ConflictResolutionService(engine: pool.engine)
        pool.origin.next(.broken(head, pieces, TransferFailure(kind: .reset, sent: .yes, detail: "cut off")))
        #expect(await service.runOnce() == 1)
        #expect(try await pool.store.data.unexaminedConflicts().count == 1)
        pool.origin.next(.json(#"{"id":1,"title":"sea","done":true}"#, etag: "\"v2\""))
        #expect(await service.runOnce() == 0)
        #expect(try await pool.states() == [.pending])
    }

    /// The read before a write that no condition guards.
    @Test func aReadBeforeAWriteThatBreaksOffIsMadeAgain() async throws {
        let pool = try await ScriptedEngine.holdingOne(etag: nil)
        await pool.tell(.patch, "/notes/1", #"{"title":"mine"}"#)
        let head = ResponseHead(status: 200, fields: [.contentType: "application/json"])
        await pool.replay(.broken(head, [], TransferFailure(kind: .reset, sent: .yes, detail: "cut off")))
        #expect(try await pool.states() == [.pending])
        #expect(pool.origin.lines.last == "GET /notes/1")
    }
}
