// Conflicts as transactions: stored completely, decided once, with the effects on the operation and its dependants
// (docs/outbox.md#decisions, P9).
import Foundation
import GRDB
import HTTPTypes
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct ConflictStoreTests {
    let scratch: Scratch
    let time = ManualTime()
    let bench: ConflictBench

    init() throws {
        scratch = try Scratch()
        bench = ConflictBench(time: time)
    }

    // MARK: opening

    @Test func whatWasKeptIsReadBack() async throws {
        var store = try openData(scratch.state, time)
        try await bench.conflicted(store, "1")
        let conflict = bench.conflict("c1", of: "1")
        let waiting = try await store.meet(conflict, decision: nil, now: time.now)
        #expect(waiting.state == .conflicted && waiting.reason == .editDelete)
        await store.close()
        store = try openData(scratch.state, time)
        #expect(try await store.conflict(id: "c1") == conflict)
        #expect(try await store.openConflict(of: waiting.sequence) == conflict)
        #expect(try await store.conflict(id: "c2") == nil)
        #expect(try await store.openConflict(of: 99) == nil)
        await store.close()
    }

    /// Absent and null stay distinct; digits, order and depth of numbers and objects are kept.
    @Test func fieldsAreKeptToTheDigit() async throws {
        let store = try openData(scratch.state, time)
        try await bench.conflicted(store, "1")
        var conflict = bench.conflict("c1", of: "1")
        var deep = JSONValue.null
        for _ in 0..<JSONValue.depthLimit { deep = .array([deep]) }
        let exact = try JSONValue.parse(Array(#"{"b":1.50,"a":12345678901234567890}"#.utf8))
        conflict.fields = [
            MergedField(
                pointer: JSONPointer(tokens: ["a/b", "~"]), base: nil, mine: .null, theirs: exact, merged: deep, isConflicting: true),
            MergedField(pointer: JSONPointer(tokens: []), base: "x", mine: nil, theirs: nil, merged: nil, isConflicting: false),
        ]
        conflict.theirs = nil
        conflict.result = Conflict.Side(body: [])
        _ = try await store.meet(conflict, decision: nil, now: time.now)
        let kept = try #require(try await store.conflict(id: "c1"))
        #expect(kept == conflict)
        #expect(kept.fields.first?.theirs?.serialized() == exact.serialized())
        await store.close()
    }

    /// At most one conflict of an operation is open: examining it again updates the same conflict.
    @Test func metAgainItIsTheSame() async throws {
        let store = try openData(scratch.state, time)
        try await bench.conflicted(store, "1")
        let first = bench.conflict("c1", of: "1")
        _ = try await store.meet(first, decision: nil, now: time.now)
        time.advance(.seconds(5))
        var again = bench.conflict("c2", of: "1")
        (again.kind, again.theirs) = (.editEdit, Conflict.Side(body: [9]))
        let waiting = try await store.meet(again, decision: nil, now: time.now)
        #expect(waiting.reason == .editEdit)
        (again.id, again.openedAt) = (first.id, first.openedAt)
        #expect(try await store.openConflict(of: 1) == again)
        #expect(try await bench.snapshots(store) == 5, "base, mine, result, theirs, and the operation's own base")
        _ = try await store.meet(again, decision: .yield, now: time.now)
        #expect(try await store.conflict(id: "c1")?.closedAt == time.now)
        #expect(try await store.conflicts(ConflictFilter(isOpen: nil)).items.map(\.id) == ["c1"])
        await store.close()
    }

    /// Two nodes of a fleet may examine the same conflict.
    @Test func whatWasDecidedSinceItWasExaminedIsNotDecidedAgain() async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(bench.put("1"))
        try await store.force("1", .conflicted)
        _ = try await store.meet(bench.conflict("c1", of: "1"), decision: .resend(bench.revision()), after: 0, now: time.now)
        // Sent again, also if the first answer was lost, or if it met the next conflict.
        for state in [OperationState.pending, .uncertain, .conflicted] {
            try await store.force("1", state)
            await #expect(throws: DataStoreError.illegal(from: state, to: .conflicted)) {
                try await store.meet(bench.conflict("c2", of: "1"), decision: .resend(bench.revision()), after: 0, now: time.now)
            }
        }
        _ = try await store.meet(bench.conflict("c3", of: "1"), decision: .yield, after: 1, now: time.now)
        #expect(try await store.conflicts(ConflictFilter(isOpen: nil)).items.map(\.id) == ["c3", "c1"])
        await store.close()
    }

    @Test(arguments: OperationState.allCases)
    func onlySomeCanMeetOne(state: OperationState) async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(bench.put("1"))
        try await store.force("1", state)
        let allowed: Set<OperationState> = [.pending, .uncertain, .conflicted]
        do {
            _ = try await store.meet(bench.conflict("c1", of: "1"), decision: nil, now: time.now)
            #expect(allowed.contains(state))
        } catch {
            #expect(error as? DataStoreError == .illegal(from: state, to: .conflicted) && !allowed.contains(state))
        }
        #expect(try await store.operation(id: "1")?.state == (allowed.contains(state) ? .conflicted : state))
        #expect(try await store.conflict(id: "c1") == nil || allowed.contains(state))
        #expect(try await bench.snapshots(store) == (allowed.contains(state) ? 5 : 1))
        await #expect(throws: DataStoreError.notFound(id: "0")) {
            try await store.meet(bench.conflict("c0", of: "0"), decision: nil, now: time.now)
        }
        await store.close()
    }

    // MARK: resending

    @Test func aRevisionTakesItsPlace() async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(
            bench.put("1") { ($0.keyIsClients, $0.principal, $0.baseETag, $0.conditionedOn) = (true, "ann", "\"v1\"", [99]) })
        _ = try await store.append(bench.put("2") { $0.principal = "ann" })
        try await bench.refuse(store, "1")
        time.advance(.seconds(5))
        let theirs = Conflict.Side(body: Array("{}".utf8), contentType: "application/json", etag: "\"v2\"")
        let change = bench.revision(base: theirs, etag: "\"v2\"")
        var conflict = bench.conflict("c1", of: "1")
        conflict.resolution = .merged
        let revised = try await store.meet(conflict, decision: .resend(change), now: time.now)
        #expect(revised.state == .pending && revised.reason == nil && revised.nextAttemptAt == time.now && revised.sequence == 1)
        #expect(revised.request.method == .patch && revised.request.target == "/notes/1?x" && revised.body == change.body)
        #expect(revised.request.fields == [.contentType: "application/merge-patch+json", .ifMatch: "\"v2\""], "no credentials are stored")
        #expect(revised.idempotencyKey == "key-new" && !revised.keyIsClients)
        #expect(revised.firstSentAt == nil && revised.lostAt == nil && revised.answeredAttempts == 0)
        #expect(revised.baseETag == "\"v2\"" && revised.baseSequence == nil)
        #expect(try await store.base(of: 1) == theirs)
        // The client's key still maps to the operation and to the fingerprint of the first request.
        let door = try #require(
            try await store.operation(clientKey: "key-1", principal: "ann", upstream: "notes", fingerprint: bench.put("1").fingerprint))
        #expect(door.operation.id == "1" && door.isSame)
        let kept = try #require(try await store.conflict(id: "c1"))
        #expect(kept.closedAt == time.now && kept.decidedBy == .strategy && kept.resolution == .merged)
        #expect(try await store.log().first.map { [$0.event, $0.detail] } == ["pending", "conflict c1 merged"])
        #expect(try await store.lease(id: "2", now: time.now) == nil, "the revised operation stays in front of the second")
        #expect(try await store.lease(id: "1", now: time.now)?.baseETag == "\"v2\"")
        await store.close()
    }

    /// A response lost before a revision no longer counts; one lost after it does.
    @Test func attemptsOfEarlierRevisionsAreOver() async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(bench.put("1"))
        let lost = AttemptRecord(error: "connection_terminated", sent: .maybe)
        for _ in 0..<2 {
            _ = try await store.lease(id: "1", now: time.now)
            let operation = try await store.finish(
                id: "1", disposition: Disposition(state: .pending, nextAttemptAt: time.now), result: nil, attempt: lost, now: time.now)
            #expect(operation.lostAt == time.now && operation.firstSentAt != nil)
            let doubts = try await store.attempts(of: operation).map(\.isInDoubt)
            #expect(doubts.last == true)
            #expect(try await store.meet(bench.conflict("c", of: "1"), decision: .resend(bench.revision()), now: time.now).lostAt == nil)
            #expect(try await store.attempts(of: operation).allSatisfy { !$0.isInDoubt && $0.isOfEarlierRevision })
            try await store.queue.commit { try $0.execute(sql: "UPDATE conflict SET id = n") }
            time.advance(.seconds(1))
        }
        // An attempt that sends nothing does not start the lifetime of the idempotency key.
        _ = try await store.lease(id: "1", now: time.now)
        let unsent = try await store.finish(
            id: "1", disposition: Disposition(state: .pending, nextAttemptAt: time.now), result: nil, attempt: AttemptRecord(sent: .no),
            now: time.now)
        #expect(unsent.firstSentAt == nil && unsent.lostAt == nil)
        await store.close()
    }

    @Test func aRevisionNamesItsBlobAndLetsTheOldGo() async throws {
        let store = try openData(scratch.state, time)
        let old = try await bench.blob(store, seed: 1)
        _ = try await store.append(bench.put("1") { $0.body = old })
        try await bench.refuse(store, "1")
        let body = try await bench.blob(store, seed: 2)
        var change = bench.revision()
        change.body = body
        let revised = try await store.meet(bench.conflict("c1", of: "1"), decision: .resend(change), now: time.now)
        #expect(revised.body == body)
        let counts = try await store.database.pool.read { try Int.fetchAll($0, sql: "SELECT refs FROM blob ORDER BY refs") }
        #expect(counts == [0, 1])
        change.body = .blob(sha256: String(repeating: "0", count: 64), length: 1)
        try await bench.refuse(store, "1")
        await #expect(throws: DataStoreError.self) {
            try await store.meet(bench.conflict("c2", of: "1"), decision: .resend(change), now: time.now)
        }
        #expect(try await store.operation(id: "1")?.state == .conflicted)
        #expect(try await store.conflict(id: "c2") == nil, "the transaction is rolled back completely")
        await store.close()
    }

    // MARK: ending

    @Test(arguments: [
        (ConflictDecision.yield, OperationState.superseded, OperationReason.yielded),
        (.delivered(differsFromMine: false), .delivered, .probed),
    ])
    func aDecisionMayEndIt(_ decision: ConflictDecision, _ state: OperationState, _ reason: OperationReason) async throws {
        let store = try openData(scratch.state, time)
        try await bench.conflicted(store, "1")
        _ = try await store.append(bench.put("2"))
        time.advance(.seconds(5))
        let ended = try await store.meet(bench.conflict("c1", of: "1"), decision: decision, now: time.now)
        #expect(ended.state == state && ended.reason == reason && ended.endedAt == time.now)
        #expect(try await store.lease(id: "2", now: time.now) != nil)
        #expect(try await store.deliveredTotal() == (state == .delivered ? 1 : 0))
        #expect(try await store.etag(of: 1) == (state == .delivered ? "\"v2\"" : nil), "the current ETag, not that of the refused attempt")
        if state == .delivered { #expect(ended.result == nil && ended.lastError == nil) }
        await store.close()
    }

    // MARK: dependants

    @Test(
        arguments: [
            (ConflictDecision.yield, true), (.delivered(differsFromMine: false), false), (.delivered(differsFromMine: true), true),
            (.resend(ConflictBench.revision(differs: true)), true),
            (.resend(ConflictBench.revision(differs: false)), false), (nil, false),
        ] as [(ConflictDecision?, Bool)])
    func whatWasBuiltOnItStandsOnWhatItsClientSaw(_ decision: ConflictDecision?, _ isLetGo: Bool) async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(bench.put("1"))
        let seen = Conflict.Side(body: [7])
        for id in ["unpinned", "ended"] { _ = try await store.append(bench.put(id) { ($0.base, $0.conditionedOn) = (nil, [1]) }) }
        _ = try await store.append(bench.put("pinned") { ($0.base, $0.conditionedOn, $0.baseETag) = (seen, [1], "\"v1\"") })
        _ = try await store.append(bench.put("apart") { $0.conditionedOn = [2] })
        _ = try await store.append(bench.put("indirect") { ($0.base, $0.conditionedOn) = (nil, [3]) })
        _ = try await store.transition(id: "ended", to: .cancelled, reason: .cancelled, from: [.pending], now: time.now)
        try await bench.refuse(store, "1")
        let conflict = bench.conflict("c1", of: "1")
        _ = try await store.meet(conflict, decision: decision, now: time.now)
        #expect(try await store.base(of: 2) == (isLetGo ? conflict.mine : nil))
        #expect(try await store.base(of: 4) == seen)
        #expect(try await store.base(of: 6) == nil, "no base is known")
        var bases: [Int64?] = []
        for id in ["unpinned", "ended", "pinned", "apart", "indirect"] { bases.append(try await store.operation(id: id)?.baseSequence) }
        #expect(bases == (isLetGo ? [nil, 1, nil, 2, nil] : [1, 1, 1, 2, 3]))
        #expect(try await store.operation(id: "pinned")?.baseETag == (isLetGo ? nil : "\"v1\""))
        await store.close()
    }

    // MARK: bases

    @Test func equalBasesAreKeptOnce() async throws {
        let store = try openData(scratch.state, time)
        let sides = [
            Conflict.Side(body: [1]), Conflict.Side(body: [1]), Conflict.Side(body: [1], contentType: ""),
            Conflict.Side(body: [1], etag: ""),
            Conflict.Side(body: [1], contentType: "1:a", etag: nil), Conflict.Side(body: [1], contentType: nil, etag: "1:a"), nil,
        ]
        for (index, side) in sides.enumerated() {
            let taken = try await store.append(bench.put("\(index)") { $0.base = side })
            #expect(try await store.base(of: taken.sequence) == side)
        }
        #expect(try await bench.snapshots(store) == 5)
        #expect(try await store.base(of: 99) == nil)
        await store.close()
    }

    @Test func anEditAndASquashKeepTheEarlierBase() async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(bench.put("1") { $0.base = Conflict.Side(body: [1]) })
        var later = bench.put("2") { $0.base = Conflict.Side(body: [2]) }
        later.maySquash = true
        #expect(try await store.take(later).squashed?.id == "1")
        #expect(try await store.base(of: 2)?.body == [1])
        #expect(try await bench.snapshots(store) == 1, "the second write's own base is no longer referenced")
        let edited = try await store.replace(
            id: "2", by: bench.put("3") { $0.base = Conflict.Side(body: [3]) }, from: [.pending], now: time.now)
        #expect(try await store.base(of: edited.sequence)?.body == [1])
        #expect(try await bench.snapshots(store) == 1)
        await store.close()
    }

    @Test func aRefusedWritePinsNothing() async throws {
        let store = try openData(scratch.state, time)
        await #expect(throws: DataStoreError.unknownDependency(id: "nobody")) {
            _ = try await store.append(bench.put("1") { $0.dependsOn = ["nobody"] })
        }
        #expect(try await bench.snapshots(store) == 0)
        await store.close()
    }

    /// K15 lies within the transaction; the end-to-end tests kill the process there.
    @Test func mergingHasItsFailPoint() { #expect(FailPoint(rawValue: "K15") == .merging) }
}
