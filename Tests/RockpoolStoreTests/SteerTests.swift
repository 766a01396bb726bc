// A user's commands as transactions: edit in place, discard with dependants, retry a lane (docs/outbox.md#steering,
// docs/outbox.md#dependencies).
import Foundation
import GRDB
import HTTPTypes
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct SteerTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    private func sql(_ store: DataStore, _ sql: String, _ arguments: StatementArguments = []) async throws {
        try await store.queue.commit { try $0.execute(sql: sql, arguments: arguments) }
    }

    /// Marks the operation as in flight, regardless of its dependencies.
    private func send(_ store: DataStore, _ id: String) async throws {
        try await sql(store, "UPDATE op SET state = 'inflight', first_sent_at = 1 WHERE id = ?", [id])
        try await sql(store, "INSERT INTO attempt (seq, n, started) SELECT seq, 1, 1 FROM op WHERE id = ?", [id])
    }

    private func end(_ store: DataStore, _ id: String, _ state: OperationState, sent: TransferFailure.Sent = .yes) async throws {
        try await send(store, id)
        _ = try await store.finish(
            id: id, disposition: Disposition(state: state), result: nil, attempt: AttemptRecord(sent: sent), now: time.now)
    }

    private func states(_ store: DataStore) async throws -> [String: OperationState] {
        let all = try await store.operations(OperationFilter(states: Set(OperationState.allCases))).items
        return Dictionary(uniqueKeysWithValues: all.map { ($0.id, $0.state) })
    }

    /// Stores a create with its local id, two later operations of the new item in its lane, a child in another lane that references the
    /// id, a grandchild that depends on the child, and one unrelated operation.
    private func family(_ store: DataStore) async throws {
        for (id, lane) in [
            ("create", "notes /n/loc_1"), ("second", "notes /n/loc_1"), ("third", "notes /n/loc_1"), ("child", "notes /c/1"),
            ("grandchild", "notes /g/1"), ("apart", "notes /c/1"),
        ] { _ = try await store.append(write(id, lane: lane, clientKey: id == "create" ? "mine" : nil, principal: "me")) }
        try await sql(store, "UPDATE op SET local_id = 'loc_1' WHERE id = 'create'")
        for (id, needs) in [("second", "create"), ("third", "create"), ("child", "create"), ("grandchild", "child")] {
            try await sql(
                store, "INSERT INTO op_dep SELECT a.seq, b.seq, 'id' FROM op AS a, op AS b WHERE a.id = ? AND b.id = ?", [id, needs])
        }
        try await sql(store, "INSERT INTO id_map (local_id, upstream, created_by) VALUES ('loc_1', 'notes', 1)")
    }

    @Test func aTreeGoesTogetherOrNotAtAll() async throws {
        let store = try openData(scratch.state, time)
        try await family(store)
        let needed = try await #require(throws: DataStoreError.self) {
            try await store.giveUp(id: "create", reason: .discarded, from: [.pending], withTree: false, now: time.now)
        }
        guard case .needed(let links) = needed else {
            Issue.record("\(needed)")
            return
        }
        #expect(links.map(\.id) == ["second", "third", "child", "grandchild"])
        #expect(try await store.counts() == [.pending: 6])
        try await send(store, "grandchild")
        await #expect(throws: DataStoreError.illegal(from: .inflight, to: .cancelled)) {
            try await store.giveUp(id: "create", reason: .discarded, from: [.pending], withTree: true, now: time.now)
        }
        #expect(try await store.counts() == [.pending: 5, .inflight: 1])
        _ = try await store.transition(id: "grandchild", to: .pending, reason: nil, from: [.inflight], now: time.now)
        let gone = try await store.giveUp(id: "create", reason: .discarded, from: [.pending], withTree: true, now: time.now)
        #expect(gone.map(\.id) == ["create", "second", "third", "child", "grandchild"])
        #expect(gone.allSatisfy { $0.state == .cancelled && $0.reason == .discarded && $0.endedAt == time.now })
        #expect(try await states(store)["apart"] == .pending)
        await store.close()
    }

    @Test func aDeliveredCreateAndASharedLaneHoldNobody() async throws {
        let store = try openData(scratch.state, time)
        for id in ["first", "later"] { _ = try await store.append(write(id, lane: "notes *")) }
        #expect(try await store.giveUp(id: "first", reason: .discarded, from: [.pending], withTree: false, now: time.now).count == 1)
        try await family(store)
        try await end(store, "create", .delivered)
        #expect(try await store.giveUp(id: "second", reason: .discarded, from: [.pending], withTree: false, now: time.now).count == 1)
        await store.close()
    }

    @Test func anEditTakesPlaceNeedsAndNeeders() async throws {
        let store = try openData(scratch.state, time)
        try await family(store)
        try await end(store, "child", .dead)
        try await end(store, "create", .dead)
        for (old, state) in [("create", OperationState.dead), ("child", .dead)] {
            let was = try #require(try await store.operation(id: old))
            #expect(was.state == state)
            var new = write("\(old)-2", body: .inline(Array("edited".utf8)), lane: "elsewhere")
            new.idempotencyKey = "new-\(old)"
            let edited = try await store.replace(id: old, by: new, from: [.dead], now: time.now)
            #expect(edited.state == .pending && edited.lane == was.lane && edited.principal == "me" && edited.answeredAttempts == 0)
            #expect(edited.idempotencyKey == "new-\(old)" && !edited.keyIsClients && edited.body == .inline(Array("edited".utf8)))
            let gone = try #require(try await store.operation(id: old))
            #expect(gone.state == .superseded && gone.reason == .edited && gone.endedAt == time.now)
        }
        for waiting in ["second", "child-2"] { #expect(try await store.lease(id: waiting, now: time.now) == nil) }
        let edited = try #require(try await store.operation(id: "create-2"))
        let standing = try #require(try await store.standings(of: [edited], rules: LaneRules(now: time.now))[edited.sequence])
        #expect(standing.fixes == "create" && standing.ahead == nil && standing.isAwaited)
        let child = try #require(try await store.operation(id: "child-2"))
        #expect(
            try await store.standings(of: [child], rules: LaneRules(now: time.now))[child.sequence]?.dependsOn.map(\.id) == ["create-2"])
        #expect(try await store.dependants(of: edited).map(\.id) == ["second", "third", "grandchild", "child-2"])
        let row = try await store.database.pool.read { db in
            try Row.fetchOne(db, sql: "SELECT key_rev, local_id, (SELECT created_by FROM id_map) = seq FROM op WHERE id = 'create-2'")
                .map { Array($0.databaseValues) }
        }
        #expect(row == [1.databaseValue, "loc_1".databaseValue, true.databaseValue])
        #expect(try await store.operation(clientKey: "mine", principal: "me", upstream: "notes")?.operation.id == "create")
        await #expect(throws: DataStoreError.illegal(from: .superseded, to: .superseded)) {
            try await store.replace(id: "create", by: write("again"), from: [.dead], now: time.now)
        }
        #expect(try await store.operation(id: "again") == nil)
        await store.close()
    }

    @Test func anUnreadableLinkNamesItsColumn() async throws {
        let store = try openData(scratch.state, time)
        let problem = try await store.database.pool.read { db in
            let row = try #require(try Row.fetchOne(db, sql: "SELECT 'a', NULL, NULL, 'PUT', 'https://api.example.com/'"))
            var columns = RowReader(row)
            return #expect(throws: UnreadableRow.self) { try DataStore.link(&columns) }
        }
        #expect(problem?.column == 1)
        await store.close()
    }

    @Test func aLaneIsRetriedButForWhatIsUncertain() async throws {
        let store = try openData(scratch.state, time)
        for id in ["dead", "uncertain", "pending", "parked"] { _ = try await store.append(write(id)) }
        _ = try await store.append(write("other", lane: "b"))
        try await end(store, "dead", .dead)
        try await end(store, "uncertain", .uncertain, sent: .maybe)
        try await end(store, "other", .dead)
        _ = try await store.transition(id: "parked", to: .parked, reason: .auth, from: [.pending], now: time.now)
        time.advance(.minutes(5))
        let (retried, uncertain) = try await store.retry(RetrySelection(lane: "notes"), now: time.now)
        #expect(retried == ["dead", "pending", "parked"] && uncertain == ["uncertain"])
        let dead = try #require(try await store.operation(id: "dead"))
        #expect(dead.state == .pending && dead.nextAttemptAt == time.now && dead.answeredAttempts == 0 && dead.endedAt == nil)
        #expect(try await states(store)["other"] == .dead)
        #expect(try await store.retry(RetrySelection(lane: "notes", upstream: "else"), now: time.now).retried.isEmpty)
        await store.close()
    }

    /// `refused` and `lost` are refused now, `old` was ten minutes ago.
    @Test func whatWasRefusedIsTakenBack() async throws {
        let store = try openData(scratch.state, time)
        func refuse(_ id: String, _ state: OperationState, _ reason: OperationReason) async throws {
            try await send(store, id)
            _ = try await store.finish(
                id: id, disposition: Disposition(state: state, reason: reason), result: nil,
                attempt: AttemptRecord(status: 404, sent: .yes), now: time.now)
        }
        for id in ["old", "refused", "edit", "lost", "parked", "pending", "worn"] {
            _ = try await store.append(write(id, lane: id, clientKey: id == "refused" ? "mine" : nil))
        }
        try await refuse("old", .dead, .rejected)
        time.advance(.minutes(10))
        try await refuse("refused", .dead, .rejected)
        try await refuse("edit", .conflicted, .editDelete)
        try await refuse("lost", .uncertain, .rejected)
        try await refuse("worn", .dead, .exhausted)
        _ = try await store.transition(id: "parked", to: .parked, reason: .auth, from: [.pending], now: time.now)
        let before = Dictionary(
            uniqueKeysWithValues: try await store.operations(OperationFilter()).items.map { ($0.id, $0.idempotencyKey) })
        let since = time.now - .minutes(5)
        time.advance(.minutes(1))
        let first = try await store.retry(RetrySelection(reason: .rejected, since: since), now: time.now)
        #expect(first.retried == ["refused"] && first.uncertain == ["lost"])
        let again = try #require(try await store.operation(id: "refused"))
        #expect(again.state == .pending && again.nextAttemptAt == time.now && again.answeredAttempts == 0 && again.firstSentAt == nil)
        #expect(again.idempotencyKey != before["refused"] && !again.keyIsClients)
        // The client's own key still recognises its request.
        #expect(try await store.operation(clientKey: "mine", principal: nil, upstream: "notes")?.operation.id == "refused")
        #expect(try await store.retry(RetrySelection(upstream: "else", reason: .rejected), now: time.now).retried.isEmpty)
        let rest = try await store.retry(RetrySelection(since: since), now: time.now)
        // One that was never answered was not refused.
        #expect(rest.retried.sorted() == ["edit", "worn"] && rest.uncertain == ["lost"])
        #expect(try await store.operation(id: "edit")?.idempotencyKey != before["edit"])
        // It may have taken effect under its key.
        #expect(try await store.operation(id: "worn")?.idempotencyKey == before["worn"])
        #expect(try await states(store)["old"] == .dead)
        #expect(try await store.retry(id: "old", from: [.dead], now: time.now).idempotencyKey != before["old"])
        await #expect(throws: DataStoreError.self) { try await store.retry(id: "old", from: [.dead], now: time.now) }
        await store.close()
    }

    @Test func theHeadOfALaneIsAheadOfAll() async throws {
        let store = try openData(scratch.state, time)
        var all: [QueuedWrite] = []
        for id in ["a", "b", "c"] { all.append(try await store.append(write(id))) }
        let standings = try await store.standings(of: all, rules: LaneRules(now: time.now))
        #expect(all.map { standings[$0.sequence]?.ahead?.id } == [nil, "a", "a"])
        #expect(all.map { standings[$0.sequence]?.isAwaited } == [true, true, false])
        await store.close()
    }
}
