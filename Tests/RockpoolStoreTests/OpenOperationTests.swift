// Reads of all open operations (docs/outbox.md#lanes), and their costs.
import GRDB
import HTTPTypes
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

@testable import RockpoolStore

@Suite struct OpenOperationTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    /// What is known of rare operations is what the rows say, after every kind of change.
    @Test func rareOperationsAreNoticed() async throws {
        let store = try openData(scratch.state, time)
        func expect(_ isKnown: Bool, line: Int = #line) async throws {
            try await eventually("line \(line)", within: .seconds(3)) { try await store.knowsNothingRare() == isKnown }
        }
        _ = try await store.append(write("1", principal: "ann"))
        try await expect(true)
        _ = try await store.lease(id: "1", now: time.now)
        #expect(store.rare.areAbsent)
        _ = try await store.finish(
            id: "1", disposition: Disposition(state: .dead, reason: .rejected), result: nil, attempt: AttemptRecord(sent: .yes),
            now: time.now)
        #expect(!store.rare.areAbsent)
        try await expect(false)
        _ = try await store.transition(id: "1", to: .superseded, reason: .discarded, from: [.dead], now: time.now)
        try await expect(true)
        var whole = write("2", lane: "notes", principal: "ann")
        whole.collection = "/v1/notes"
        _ = try await store.append(whole)
        #expect(!store.rare.areAbsent)
        try await expect(false)
        _ = try await store.transition(id: "2", to: .cancelled, reason: .discarded, from: [.pending], now: time.now)
        try await expect(true)
        await store.close()
    }

    /// A summary that is read alone equals that of the whole operation.
    @Test func aSummaryHasEverythingThatReplayNeeds() async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(write("1", principal: "ann"))
        var second = write("2", lane: "notes", principal: "ann")
        (second.collection, second.entityID, second.dependsOn, second.priority) = ("/v1/notes", "2", ["1"], -7)
        _ = try await store.append(second)
        var third = write("3", lane: "other")
        third.expiresAt = time.now + .hours(1)
        _ = try await store.append(third)
        _ = try await store.append(write("4", lane: "gone"))
        _ = try await store.transition(id: "4", to: .cancelled, reason: .discarded, from: [.pending], now: time.now)
        _ = try await store.lease(id: "1", now: time.now)
        _ = try await store.finish(
            id: "1", disposition: Disposition(state: .uncertain, reason: .lostAnswer, nextAttemptAt: time.now, countsAsAnswered: false),
            result: nil, attempt: AttemptRecord(sent: .maybe), now: time.now)
        let found = try await store.reduceOpen(into: [Int64: OperationSummary]()) { found, summary, _, _ in
            found[summary.sequence] = summary
        }
        let whole = try await store.openOperations().map { OperationSummary($0) }
        #expect(whole.map(\.sequence) == [1, 2, 3] && found.count == 3)
        for summary in whole { #expect(found[summary.sequence] == summary) }
        #expect(found[1]?.lostAt != nil && found[2]?.needs == [1])
        let entities = try await store.reduceOpen(into: [String?]()) { entities, _, entityID, _ in entities.append(entityID) }
        #expect(entities.contains("2"))
        await store.close()
    }

    /// A write to a file that is read alone equals the whole operation in what reads of files need, wherever its body lies.
    @Test func aFileThatWaitsHasWhatReadsNeed() async throws {
        let store = try openData(scratch.state, time)
        let bodies: [OperationBody] = [.none, .inline(bytes(5)), .inline(bytes(200_000))]
        for (number, body) in bodies.enumerated() {
            var file = write("\(number)", body: body, lane: "files \(number)", principal: number == 0 ? nil : "ann")
            file.request.fields[.contentType] = "text/plain"
            (file.viewer, file.entity) = (Viewer.Program(number: Int64(number)), nil)
            _ = try await store.append(file)
        }
        var item = write("item", lane: "notes")
        item.collection = "/v1/notes"
        _ = try await store.append(item)
        _ = try await store.append(write("gone", lane: "gone"))
        _ = try await store.transition(id: "gone", to: .cancelled, reason: .discarded, from: [.pending], now: time.now)
        let found = Mutex<[QueuedWrite]>([])
        try await store.eachOpenFile { file in found.withLock { $0.append(file) } }
        let files = found.withLock { $0 }
        #expect(files.map(\.id) == ["0", "1", "2"] && files.map(\.bodyLength) == [0, 5, 200_000])
        for file in files {
            let whole = try #require(try await store.operation(id: file.id))
            #expect(file.request == whole.request && file.writer == whole.writer && file.sequence == whole.sequence)
            #expect(file.state == whole.state && file.acceptedAt == whole.acceptedAt && file.upstream == whole.upstream)
            #expect(file.lane == whole.lane && file.bodyLength == whole.bodyLength && file.collection == nil)
        }
        await store.close()
    }

    /// Each write to a member of a collection looks for open writes to the whole of it. Without an index of its own this took as long as
    /// there were open writes: the hundred thousandth write a thousand times as long as the hundredth.
    @Test func theSearchForWritesToAWholeCollectionReadsNoOtherRows() async throws {
        let store = try openData(scratch.state, time)
        let plan = try await store.queue.outside { db in
            try Row.fetchAll(
                db, sql: "EXPLAIN QUERY PLAN " + QueuedWriteDraft.openOfCollection(isMember: true), arguments: ["notes", "/notes", "", 9]
            ).map { $0["detail"] as String }
        }
        #expect(plan.count == 1 && plan.first?.contains("op_whole_collection") == true, "\(plan)")
        await store.close()
    }

    /// Each new write asks what it waits for in its lane. By a search of all open operations there, the ten thousandth write took ten times as
    /// long as the thousandth.
    @Test func searchForWhatHoldsAWriteReadsFewRows() async throws {
        let store = try openData(scratch.state, time)
        for (id, principal) in [("1", "ann"), ("2", nil), ("3", "ann"), ("4", "bob"), ("5", nil)] {
            _ = try await store.append(write(id, principal: principal))
        }
        _ = try await store.append(write("6", lane: "other", principal: "cid"))
        _ = try await store.transition(id: "2", to: .cancelled, reason: .discarded, from: [.pending], now: time.now)
        _ = try await store.lease(id: "1", now: time.now)
        func blocker(of principal: String?, in lane: String? = nil) async throws -> String? {
            var new = write("7", principal: principal)
            new.lane = lane ?? new.lane
            return try await store.blocker(of: new.summary(now: time.now), in: new.lane, rules: LaneRules(now: time.now))?.id
        }
        #expect(try await blocker(of: "ann") == "1")
        #expect(try await blocker(of: "bob") != nil)
        #expect(try await blocker(of: "none", in: "none") == nil)
        let plan = try await store.queue.outside { db in
            try Row.fetchAll(
                db,
                sql:
                    "EXPLAIN QUERY PLAN SELECT seq FROM op WHERE lane = ?1 AND place < 9 AND \(OperationState.isOpen) ORDER BY place LIMIT 4",
                arguments: ["lane"]
            ).map { $0["detail"] as String }
        }
        #expect(plan.count == 1 && plan.first?.contains("op_lane (lane=? AND place<?)") == true, "\(plan)")
        await store.close()
    }

    /// The search leaves out rows that hold nobody, and no others: it finds what the rule says of all of them. A POST that its upstream takes
    /// again was left out, so that a live write overtook it after a crash; so was an action, which holds what is written to its item.
    @Test(arguments: IdempotencySettings.Honoured.allCases, [nil, "/v1/notes"])
    func theSearchFindsWhatTheRuleSays(honoured: IdempotencySettings.Honoured, collection: String?) async throws {
        var (upstream, configuration) = (Upstream(name: "notes", origin: origin), RockpoolCore.Configuration())
        upstream.idempotency.honoured = honoured
        configuration.upstreams = [upstream]
        let rules = LaneRules(routes: RouteTable(configuration), now: time.now)
        let store = try openData(scratch.state, time)
        for state in OperationState.allCases where !state.hasEnded {
            for method in [HTTPRequest.Method.post, .put, .patch] {
                let id = "\(method) \(state)"
                var earlier = write(id, lane: id, principal: "ann")
                (earlier.request.method, earlier.collection, earlier.entity) = (method, collection, "/v1/notes/1")
                _ = try await store.append(earlier)
                try await store.force(id, state)
                let row = try #require(try await store.operation(id: id))
                for (kind, client) in [(HTTPRequest.Method.post, "ann"), (.put, "ann"), (.post, "bob"), (.put, "bob")] {
                    var later = write("later", lane: id, principal: client)
                    (later.request.method, later.collection, later.entity) = (kind, collection, "/v1/notes/1")
                    let new = later.summary(now: time.now)
                    var order = ReplayOrder([OperationSummary(row)], context: rules.context, now: time.now)
                    let (found, expected) = (try await store.blocker(of: new, in: id, rules: rules)?.id, order.blocker(of: new)?.id)
                    #expect(found == expected, "\(kind) of \(client) after \(id)")
                    let isResent = honoured == .yes && state == .uncertain && method == .post && client == "ann"
                    #expect(!isResent || found == id, "\(kind) after \(id)")
                }
            }
        }
        await store.close()
    }

    /// An older version kept the POSTs of each principal in a lane of their own, and paths as they were spelled.
    @Test func operationsOfAnOlderVersionAreInTheirLaneAfterAnUpgrade() async throws {
        let store = try openData(scratch.state, time)
        for (id, lane, entity, principal) in [
            ("1", "notes /cart ann", "/cart", "ann"), ("2", "notes /cart *", "/cart", nil), ("3", "notes /cart", "/cart", "ann"),
            ("4", "notes /a%7eb", "/a%7eb", "ann"), ("5", "notes /a%7eb ann", "/a%7eb", "ann"), ("6", "notes", "/a%7eb", nil),
        ] {
            var old = write(id, lane: lane, principal: principal)
            old.entity = entity
            _ = try await store.append(old)
        }
        await store.close()
        let upgraded = try openData(scratch.state, time)
        let lanes = try await upgraded.openOperations().map { "\($0.lane) of \($0.entity ?? "")" }
        #expect(
            lanes == [
                "notes /cart of /cart", "notes /cart of /cart", "notes /cart of /cart", "notes /a~b of /a~b", "notes /a~b of /a~b",
                "notes of /a%7eb",
            ])
        var new = write("7", lane: "notes /cart", principal: "ann")
        new.request.method = .delete
        let rules = LaneRules(now: time.now)
        #expect(try await upgraded.blocker(of: new.summary(now: time.now), in: new.lane, rules: rules)?.id == "1")
        await upgraded.close()
    }

    /// GRDB forgets the statements of transitions with every observer of a transaction: preparing them anew was a third of a replay.
    @Test func aDeliveryThatMapsALocalIDPreparesNothingAnew() async throws {
        let store = try openData(scratch.state, time)
        var create = write("1")
        create.localID = LocalID.make(now: time.now, random: (1, 2))
        _ = try await store.append(create)
        _ = try await store.lease(id: "1", now: time.now)
        let prepared = { try await store.queue.outside { ObjectIdentifier(try $0.cachedStatement(sql: TransitionUpdate.plain.sql)) } }
        let before = try await prepared()
        var delivered = Disposition(state: .delivered)
        delivered.mapping = ServerMapping(id: ServerID(text: "7"), url: "u")
        _ = try await store.finish(id: "1", disposition: delivered, result: nil, attempt: AttemptRecord(sent: .yes), now: time.now)
        #expect(store.localIDs.mapping(of: try #require(create.localID))?.id.text == "7")
        #expect(try await prepared() == before)
        await store.close()
    }
}
