// The life of a conflict: decided by a user, listed, counted, purged with its operation (docs/outbox.md#decisions, P9;
// docs/reference/admin-api.md#conflicts).
import Foundation
import GRDB
import HTTPTypes
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct ConflictLifeTests {
    let scratch: Scratch
    let time = ManualTime()
    let bench: ConflictBench

    init() throws {
        scratch = try Scratch()
        bench = ConflictBench(time: time)
    }

    private func opened() async throws -> DataStore {
        let store = try openData(scratch.state, time)
        try await bench.conflicted(store, "1")
        _ = try await store.meet(bench.conflict("c1", of: "1"), decision: nil, now: time.now)
        return store
    }

    // MARK: a user's decision

    @Test(arguments: [
        (Conflict.Resolution.theirs, ConflictDecision.yield, OperationState.superseded),
        (.mine, .delivered(differsFromMine: false), .delivered),
        (.merged, .resend(ConflictBench.revision(differs: true)), .pending),
    ])
    func aPersonDecidesOnce(_ resolution: Conflict.Resolution, _ decision: ConflictDecision, _ state: OperationState) async throws {
        let store = try await opened()
        let before = try #require(try await store.conflict(id: "c1"))
        time.advance(.hours(1))
        let result = Conflict.Side(body: Array("by hand".utf8))
        let operation = try await bench.resolve(store, "c1", as: resolution, result: result, decision: decision, now: time.now)
        #expect(operation.state == state)
        var after = before
        (after.result, after.closedAt, after.resolution, after.decidedBy) = (result, time.now, resolution, .person)
        #expect(try await store.conflict(id: "c1") == after)
        #expect(try await bench.snapshots(store) == (state == .pending ? 4 : 5), "the old result is released, and so is a replaced base")
        for again in [ConflictDecision.yield, .delivered(differsFromMine: false)] {
            await #expect(throws: DataStoreError.conflictDecided(id: "c1")) {
                try await bench.resolve(store, "c1", as: .theirs, result: nil, decision: again, now: time.now)
            }
        }
        await #expect(throws: DataStoreError.conflictNotFound(id: "c2")) {
            try await bench.resolve(store, "c2", as: .theirs, result: nil, decision: .yield, now: time.now)
        }
        #expect(try await store.conflict(id: "c1") == after)
        await store.close()
    }

    /// A conflict is closed whichever way its operation leaves the conflicted state.
    @Test func anOperationThatMovedOnIsNotDecidedAbout() async throws {
        let store = try await opened()
        try await store.force("1", .parked)
        await #expect(throws: DataStoreError.illegal(from: .parked, to: .superseded)) {
            try await bench.resolve(store, "c1", as: .theirs, result: nil, decision: .yield, now: time.now)
        }
        #expect(try await store.openConflict(of: 1) != nil)
        await store.close()
    }

    enum Steering: CaseIterable { case discard, retry, retryLane, cancel, edit, treeOfAnother }

    @Test(arguments: Steering.allCases) func steeringClosesIt(_ steering: Steering) async throws {
        let store = try await opened()
        time.advance(.minutes(1))
        switch steering {
        case .discard: _ = try await store.giveUp(id: "1", reason: .discarded, from: [.conflicted], withTree: false, now: time.now)
        case .retry: _ = try await store.transition(id: "1", to: .pending, reason: nil, from: [.conflicted], now: time.now)
        case .retryLane: _ = try await store.retry(RetrySelection(lane: "notes /notes/1"), now: time.now)
        case .cancel: _ = try await store.transition(id: "1", to: .cancelled, reason: .cancelled, from: [.conflicted], now: time.now)
        case .edit: _ = try await store.replace(id: "1", by: bench.put("2"), from: [.conflicted], now: time.now)
        case .treeOfAnother:
            _ = try await store.append(bench.put("2") { $0.lane = "else" })
            try await store.queue.commit { try $0.execute(sql: "INSERT INTO op_dep VALUES (1, 2, 'explicit')") }
            _ = try await store.giveUp(id: "2", reason: .discarded, from: [.pending], withTree: true, now: time.now)
        }
        let conflict = try #require(try await store.conflict(id: "c1"))
        #expect(conflict.closedAt == time.now && conflict.decidedBy == .person)
        #expect(conflict.resolution == ([.discard, .treeOfAnother].contains(steering) ? .theirs : nil))
        #expect(try await store.openConflict(of: 1) == nil)
        await store.close()
    }

    // MARK: lists

    @Test func theNewestComeFirstPageByPage() async throws {
        let store = try openData(scratch.state, time)
        for n in 1...5 {
            try await bench.conflicted(store, "\(n)") { ($0.lane, $0.upstream) = ("\(n)", n == 3 ? "other" : "notes") }
            let conflict = bench.conflict(
                "c\(n)", of: "\(n)", sequence: Int64(n), upstream: n == 3 ? "other" : "notes", entity: n < 3 ? "/notes/1" : "/notes/2")
            _ = try await store.meet(conflict, decision: n == 4 ? .yield : nil, now: time.now)
        }
        func ids(_ filter: ConflictFilter) async throws -> [String] { try await store.conflicts(filter).items.map(\.id) }
        #expect(try await ids(ConflictFilter()) == ["c5", "c3", "c2", "c1"])
        #expect(try await ids(ConflictFilter(isOpen: nil)) == ["c5", "c4", "c3", "c2", "c1"])
        #expect(try await ids(ConflictFilter(isOpen: false)) == ["c4"])
        #expect(try await ids(ConflictFilter(upstream: "other")) == ["c3"])
        #expect(try await ids(ConflictFilter(upstream: "notes", entity: "/notes/2", isOpen: nil)) == ["c5", "c4"])
        #expect(try await ids(ConflictFilter(entity: "/notes/3")).isEmpty)
        var (filter, pages): (ConflictFilter, [[String]]) = (ConflictFilter(isOpen: nil, limit: 2), [])
        repeat {
            let page = try await store.conflicts(filter)
            pages.append(page.items.map(\.id))
            filter.cursor = page.next
        } while filter.cursor != nil
        #expect(pages == [["c5", "c4"], ["c3", "c2"], ["c1"]])
        let light = try #require(try await store.conflicts().items.last)
        #expect(light.kind == .editDelete && light.base == nil && light.theirs == nil && light.openedAt == time.now)
        #expect(try await store.openConflictCounts() == ["notes": 3, "other": 1])
        await store.close()
    }

    /// A user's decision resets the number of rounds that the strategy has used.
    @Test func roundsAreCountedSinceAPersonDecided() async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(bench.put("1"))
        for n in 1...3 {
            try await bench.refuse(store, "1")
            _ = try await store.meet(bench.conflict("c\(n)", of: "1"), decision: .resend(bench.revision()), now: time.now)
            #expect(try await store.rounds(of: 1) == n)
        }
        try await bench.refuse(store, "1")
        _ = try await store.meet(bench.conflict("c4", of: "1"), decision: nil, now: time.now)
        #expect(try await store.rounds(of: 1) == 3)
        _ = try await bench.resolve(store, "c4", as: .merged, result: nil, decision: .resend(bench.revision()), now: time.now)
        #expect(try await store.rounds(of: 1) == 0)
        try await bench.refuse(store, "1")
        _ = try await store.meet(bench.conflict("c5", of: "1"), decision: .resend(bench.revision()), now: time.now)
        #expect(try await store.rounds(of: 1) == 1)
        #expect(try await store.rounds(of: 2) == 0)
        await store.close()
    }

    @Test func whatNobodyLookedAtIsFound() async throws {
        let store = try openData(scratch.state, time)
        for id in ["1", "2", "3"] { try await bench.conflicted(store, id) { $0.lane = id } }
        _ = try await store.append(bench.put("4"))
        _ = try await store.meet(bench.conflict("c1", of: "1"), decision: nil, now: time.now)
        _ = try await store.meet(bench.conflict("c2", of: "2"), decision: .resend(bench.revision()), now: time.now)
        #expect(try await store.unexaminedConflicts().map(\.id) == ["3"])
        try await bench.refuse(store, "2")
        #expect(try await store.unexaminedConflicts().map(\.id) == ["2", "3"])
        await store.close()
    }

    // MARK: purge

    private func clean(_ store: DataStore) async throws -> Int {
        let report = await store.cleanup(CleanupOptions(), settings: CleanupSettings(), now: time.now)
        #expect(report.errors.isEmpty)
        return report.operations.purged
    }

    /// Delivered operations with a conflict are kept as long as failed ones: until then the sides can be read and the decision undone.
    @Test(arguments: [ConflictDecision.yield, .delivered(differsFromMine: false)]) func sidesGoWithTheOperation(
        _ decision: ConflictDecision
    ) async throws {
        let store = try await opened()
        _ = try await store.append(bench.put("plain") { $0.lane = "else" })
        _ = try await store.lease(id: "plain", now: time.now)
        _ = try await store.finish(
            id: "plain", disposition: Disposition(state: .delivered), result: nil, attempt: AttemptRecord(sent: .yes), now: time.now)
        time.advance(.days(400))
        #expect(try await clean(store) == 1, "an open conflict is never purged")
        #expect(try await bench.snapshots(store) == 5)
        _ = try await bench.resolve(store, "c1", as: .theirs, result: nil, decision: decision, now: time.now)
        time.advance(.days(29))
        #expect(try await clean(store) == 0)
        #expect(try await store.conflict(id: "c1")?.mine != nil)
        time.advance(.days(2))
        #expect(try await clean(store) == 1)
        #expect(try await store.conflict(id: "c1") == nil)
        #expect(try await bench.snapshots(store) == 0)
        await store.close()
    }

    /// A snapshot that another conflict references stays.
    @Test func sharedSidesStay() async throws {
        let store = try await opened()
        try await bench.conflicted(store, "2") { $0.lane = "else" }
        _ = try await store.meet(bench.conflict("c2", of: "2", sequence: 2), decision: nil, now: time.now)
        #expect(try await bench.snapshots(store) == 5)
        _ = try await bench.resolve(store, "c1", as: .theirs, result: nil, decision: .yield, now: time.now)
        time.advance(.days(31))
        #expect(try await clean(store) == 1)
        #expect(try await bench.snapshots(store) == 5)
        #expect(try await store.conflict(id: "c2")?.result != nil)
        await store.close()
    }

    /// The search for other references to a snapshot must use an index, because it runs for every write with a base in the end.
    @Test func everyLookupHasItsIndex() async throws {
        let store = try openData(scratch.state, time)
        let plans = try await store.database.pool.read { db in
            try [
                "SELECT 1 FROM snapshot_use WHERE sha = x'00'", "SELECT n FROM conflict WHERE closed IS NULL AND n < 9 ORDER BY n DESC",
                DataStore.openCounts,
                "UPDATE op SET base_seq = NULL WHERE base_seq = 1",
            ].map { sql in try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN \(sql)").map { $0["detail"] as String } }
        }
        #expect(plans[0].count { $0.hasPrefix("SEARCH") } == 5)
        #expect(plans[1].contains { $0.contains("conflict_waiting") } && plans[1].count == 1, "\(plans[1])")
        #expect(plans[2].contains { $0.contains("conflict_waiting") }, "\(plans[2])")
        #expect(plans[3].contains { $0.contains("op_built") }, "\(plans[3])")
        await store.close()
    }
}
