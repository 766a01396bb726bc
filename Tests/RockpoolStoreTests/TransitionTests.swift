// Every transition sets the same columns, closes a conflict that it ends, and writes a line of the log (docs/outbox.md#states).
import Foundation
import GRDB
import HTTPTypes
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

    /// Of writes that wait for each other only the last is needed: if that one is never sent, the one before it is needed.
    @Test func whatNeedsASquashedWriteWaitsForWhatThatOneWaitsFor() async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(write("a", lane: "a"))
        for (id, needed) in [("b", "a"), ("c", "b")] {
            var new = write(id, lane: id)
            new.dependsOn = [needed]
            _ = try await store.append(new)
        }
        _ = try await store.transition(id: "b", to: .dead, reason: .expired, from: [.pending], now: time.now)
        #expect(try await store.lease(id: "c", now: time.now) == nil)
        _ = try await store.transition(id: "b", to: .superseded, reason: .squashed, from: [.dead], now: time.now)
        #expect(try await store.lease(id: "c", now: time.now) == nil)
        _ = try await store.giveUp(id: "a", reason: .discarded, from: [.pending], withTree: true, now: time.now)
        #expect(try await store.operation(id: "c")?.state == .cancelled)
        await store.close()
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

    /// What `lease` and `finish` return without a read of the row is what a read returns.
    @Test func whatIsNotReadBackIsWhatTheRowSays() async throws {
        let store = try openData(scratch.state, time)
        let bench = ConflictBench(time: time)
        let mapping = ServerMapping(id: ServerID(text: "17"), url: "http://h/notes/17")
        let results: [OperationResult?] = [
            OperationResult(head: ResponseHead(status: 201, fields: [.eTag: "\"1\"", .location: "/notes/17"]), body: Array("{}".utf8)),
            OperationResult(head: ResponseHead(status: 204), body: []),
            OperationResult(head: ResponseHead(status: 200), body: bytes(DataStore.inlineLimit + 5)),
            OperationResult(head: ResponseHead(status: 500), body: []), nil,
        ]
        var number = 0
        for result in results {
            for (isCreate, isAnswered, sent) in [(true, true, TransferFailure.Sent.yes), (false, false, .maybe), (false, true, .no)] {
                for (attempts, state) in [(1, OperationState.delivered), (2, .delivered), (1, .uncertain), (1, .dead)] {
                    number += 1
                    var draft = isCreate ? write("\(number)", lane: "\(number)") : bench.put("\(number)") { $0.lane = "\(number)" }
                    if isCreate { draft.localID = LocalID.make(now: time.now, random: (1, UInt64(number))) }
                    _ = try await store.append(draft)
                    for _ in 1..<attempts {
                        _ = try await store.lease(id: draft.id, now: time.now)
                        _ = try await store.finish(
                            id: draft.id, disposition: Disposition(state: .pending, nextAttemptAt: time.now, detail: "refused"),
                            result: OperationResult(head: ResponseHead(status: 429), body: [1]), attempt: AttemptRecord(sent: .yes),
                            now: time.now)
                        time.advance(.seconds(1))
                    }
                    let leased = try #require(try await store.lease(id: draft.id, now: time.now))
                    #expect(try await store.operation(id: draft.id) == leased)
                    time.advance(.milliseconds(7))
                    let finished = try await store.finish(
                        id: draft.id,
                        disposition: Disposition(
                            state: state, reason: state == .delivered ? .probed : nil, countsAsAnswered: isAnswered,
                            mapping: isCreate ? mapping : nil, detail: "detail"),
                        result: result, attempt: AttemptRecord(status: result?.head.status, sent: sent), leased: leased, now: time.now)
                    #expect(try await store.operation(id: draft.id) == finished)
                }
            }
        }
        // Another end in the meantime is not overwritten.
        _ = try await store.append(write("cut", lane: "cut"))
        let leased = try #require(try await store.lease(id: "cut", now: time.now))
        try await store.force("cut", .uncertain)
        await #expect(throws: DataStoreError.illegal(from: .uncertain, to: .delivered)) {
            try await store.finish(
                id: "cut", disposition: Disposition(state: .delivered), result: results[1], attempt: AttemptRecord(sent: .yes),
                leased: leased, now: time.now)
        }
        await store.close()
    }
}
