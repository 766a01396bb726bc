// The states of entities (docs/reference/admin-api.md#sync).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct EntityStateTests {
    private func write(_ method: HTTPRequest.Method, _ sequence: Int64, creates: Bool = false) -> QueuedWrite {
        let origin = OriginAddress(scheme: .https, host: "api.test")
        let moment = Timestamp(seconds: 1)
        var write = QueuedWrite(
            sequence: sequence, id: "\(sequence)", request: RequestHead(method: method, origin: origin, target: "/notes/1"), body: .none,
            upstream: "notes", lane: "a", idempotencyKey: "k", acceptedAt: moment, nextAttemptAt: moment)
        if creates { write.localID = LocalID("loc_01a20e71-df26-7584-8591-79e50b8bf1cc") }
        return write
    }

    @Test func theLastWriteAndTheCreationDecide() {
        #expect(EntityState.of([]) == nil)
        #expect(EntityState.of([write(.patch, 2)]) == .pendingUpdate)
        #expect(EntityState.of([write(.patch, 2), write(.post, 1, creates: true)]) == .pendingCreate)
        #expect(EntityState.of([write(.delete, 3), write(.patch, 2)]) == .pendingDelete)
        #expect(EntityState.of([write(.delete, 1), write(.put, 2)]) == .pendingUpdate, "made again")
    }
}
