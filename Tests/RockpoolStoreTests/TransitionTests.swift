// Every transition sets the same columns, closes a conflict that it ends, and writes a line of the log (docs/outbox.md#states).
import Foundation
import GRDB
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct TransitionTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    static let legal: [(OperationState, OperationState)] = OperationMachine.legal.flatMap { from, next in next.map { (from, $0) } }

    /// In `state`, with a conflict if it has one, and with counters and an error to be kept or reset.
    private func opened(_ state: OperationState) async throws -> DataStore {
        let store = try openData(scratch.state, time)
        let bench = ConflictBench(time: time)
        _ = try await store.append(bench.put("1"))
        try await store.force("1", state)
        if state == .conflicted { _ = try await store.meet(bench.conflict("c1", of: "1"), decision: nil, now: time.now) }
        try await store.queue.commit { db in
            try db.execute(sql: "UPDATE op SET answered_attempts = 3, probes = 2, last_error = 'refused', ended_at = 7")
        }
        return store
    }

    @Test(arguments: legal) func allSetTheSame(_ from: OperationState, _ to: OperationState) async throws {
        let store = try await opened(from)
        time.advance(.seconds(5))
        let now = time.now
        try await store.queue.commit { db in
            try DataStore.transition(in: db, sequence: 1, from: from, to: to, reason: nil, now: now)
        }
        let operation = try #require(try await store.operation(id: "1"))
        #expect(operation.state == to && operation.endedAt == (to.hasEnded || to == .dead ? now : nil))
        #expect(operation.answeredAttempts == (from == .dead && to == .pending ? 0 : 3))
        #expect(operation.probes == (to == .uncertain ? 2 : 0))
        #expect(operation.lastError == (to == .delivered ? nil : "refused"))
        #expect(try await store.openConflict(of: 1) == nil)
        #expect(try await store.log().first?.event == (to == .inflight ? "pending" : to.rawValue))
        await store.close()
    }

    @Test(arguments: OperationState.allCases, OperationState.allCases)
    func othersAreRefused(_ from: OperationState, _ to: OperationState) async throws {
        guard from != to, !OperationMachine.permits(from: from, to: to) else { return }
        let store = try await opened(from)
        let now = time.now
        await #expect(throws: DataStoreError.illegal(from: from, to: to)) {
            try await store.queue.commit { db in
                try DataStore.transition(in: db, sequence: 1, from: from, to: to, reason: nil, now: now)
            }
        }
        #expect(try await store.operation(id: "1")?.state == from)
        await store.close()
    }
}
