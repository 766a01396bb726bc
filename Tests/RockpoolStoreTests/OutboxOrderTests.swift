// Dependencies, bases, ids and squashing as transactions: the order that the store itself enforces (docs/outbox.md#schema,
// docs/outbox.md#lanes, docs/outbox.md#local-ids, docs/outbox.md#lane-holds).
import Foundation
import GRDB
import HTTPTypes
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct OutboxOrderTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    private func put(
        _ id: String, _ note: String = "1", lane: String? = nil, method: HTTPRequest.Method = .put, body: String = #"{"a":1}"#,
        _ change: (inout QueuedWriteDraft) -> Void = { _ in }
    ) -> QueuedWriteDraft {
        let path = "/notes/\(note)"
        var new = QueuedWriteDraft(
            id: id, request: RequestHead(method: method, origin: origin, target: path, fields: [.contentType: "application/json"]),
            body: body.isEmpty ? .none : .inline(Array(body.utf8)), upstream: "notes", entity: path, lane: lane ?? "notes \(path)",
            idempotencyKey: "key-\(id)")
        (new.collection, new.entityID, new.takesBase) = ("/notes", note, true)
        change(&new)
        return new
    }

    private func create(_ id: String, _ local: LocalID, _ change: (inout QueuedWriteDraft) -> Void = { _ in }) -> QueuedWriteDraft {
        put(id, local.text, method: .post) {
            $0.request.target = "/notes"
            ($0.localID, $0.takesBase) = (local, false)
            change(&$0)
        }
    }

    private func local(_ n: UInt64) -> LocalID { LocalID.make(now: time.now, random: (n, n)) }

    private func deliver(_ store: DataStore, _ id: String, etag: String? = nil, mapping: ServerMapping? = nil) async throws {
        #expect(try await store.lease(id: id, now: time.now) != nil, "\(id) can be leased")
        var fields: HTTPFields = [:]
        fields[.eTag] = etag
        _ = try await store.finish(
            id: id, disposition: Disposition(state: .delivered, mapping: mapping),
            result: OperationResult(head: ResponseHead(status: 200, fields: fields), body: []), attempt: AttemptRecord(sent: .yes),
            now: time.now)
    }

    private func states(_ store: DataStore) async throws -> [OperationState] {
        try await store.operations(OperationFilter(states: Set(OperationState.allCases))).items
            .sorted { $0.sequence < $1.sequence }.map(\.state)
    }

    // MARK: keys of clients

    /// What is written to an item, or below it, needs the open create that gives the item its key; a second create with the key is ordered by
    /// its lane alone (docs/outbox.md#chosen-keys).
    @Test func writesToAChosenKeyNeedItsCreate() async throws {
        let store = try openData(scratch.state, time)
        func create(_ id: String) -> QueuedWriteDraft {
            put(id, "k1", method: .post) {
                $0.request.target = "/notes"
                ($0.newItem, $0.takesBase) = (.chosen("k1"), false)
            }
        }
        let first = try await store.append(create("first"))
        var below = put("below", "k1", method: .post) { $0.takesBase = false }
        below.request.target = "/notes/k1/tags"
        (below.entity, below.collection, below.newItem) = ("/notes/k1/tags/t", "/notes/k1/tags", .chosen("t"))
        (below.entityID, below.lane) = ("t", "notes /notes/k1/tags/t")
        try await #expect(store.isCollectionOpen(for: below))
        let edit = try await store.append(put("edit", "k1"))
        let tag = try await store.append(below)
        let again = try await store.append(create("again"))
        #expect(edit.needs == [first.sequence] && edit.baseSequence == first.sequence && edit.follows.isEmpty)
        #expect(tag.needs == [first.sequence] && tag.follows.isEmpty)
        #expect(again.needs == again.follows && again.newItem == .chosen("k1"))
        let other = try await store.append(put("other", "k2"))
        #expect(other.needs.isEmpty && other.baseSequence == nil)
        try await #expect(Set(store.dependants(of: first).map(\.id)) == ["edit", "below"])
        try await deliver(store, "first")
        try await #expect(!store.isCollectionOpen(for: put("later", "k3")))
        await store.close()
    }

    /// A write to an item that nothing shows may be to one that an open create of its client makes: it follows the last of them.
    @Test func aWriteToAnUnknownItemFollowsTheCreatesOfItsClient() async throws {
        let store = try openData(scratch.state, time)
        let unknown = { (id: String, principal: String?) in
            self.put(id, "slug-\(id)", method: .delete, body: "") { ($0.mayAddressNewItem, $0.principal) = (true, principal) }
        }
        try await #expect(!store.isCollectionOpen(for: unknown("0", nil)))
        _ = try await store.append(create("a", local(1)))
        let last = try await store.append(create("b", local(2)))
        try await #expect(store.isCollectionOpen(for: unknown("1", nil)))
        try await #expect(!store.isCollectionOpen(for: unknown("2", "ann")))
        let later = try await store.append(unknown("1", nil))
        #expect(later.needs == [last.sequence] && later.follows == [last.sequence])
        let others = try await store.append(unknown("2", "ann"))
        #expect(others.needs.isEmpty)
        await store.close()
    }

    // MARK: leasing

    static let open: [OperationState] = [.pending, .inflight, .uncertain, .conflicted, .parked, .dead]

    /// While the earlier operation is in flight, or will be, no later one of its lane is leased; what has left the order blocks none.
    @Test(arguments: OperationState.allCases)
    func aLeaseIsRefusedOutOfOrder(state: OperationState) async throws {
        let store = try openData(scratch.state, time)
        for id in ["first", "second"] {
            var write = put(id)
            write.principal = "ann"
            _ = try await store.append(write)
        }
        _ = try await store.append(put("apart", "2"))
        try await store.force("first", state)
        #expect((try await store.lease(id: "second", now: time.now) == nil) == [.pending, .inflight].contains(state))
        #expect(try await store.lease(id: "apart", now: time.now) != nil)
        #expect(try await store.lease(id: "nobody", now: time.now) == nil)
        await store.close()
    }

    @Test(arguments: OperationState.allCases)
    func aLeaseIsRefusedWhileANeedIsOpen(state: OperationState) async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(put("needed", "1"))
        _ = try await store.append(put("needing", "2") { $0.dependsOn = ["needed"] })
        try await store.force("needed", state)
        #expect((try await store.lease(id: "needing", now: time.now) == nil) == Self.open.contains(state))
        await store.close()
    }

    @Test func whatIsBeingSentIsNotLeasedTwice() async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(put("1"))
        #expect(try await store.lease(id: "1", now: time.now) != nil)
        #expect(try await store.lease(id: "1", now: time.now) == nil)
        await store.close()
    }

    // MARK: bases

    /// Each write is based on the previous one of the same principal; the first is based on the copy that its client had.
    @Test func theBaseIsTheLastOfTheLane() async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(put("1") { ($0.baseETag, $0.principal) = ("\"v1\"", "ann") })
        _ = try await store.append(put("2") { ($0.baseETag, $0.principal) = ("\"v1\"", "ann") })
        _ = try await store.append(put("3") { ($0.baseETag, $0.principal) = ("\"v1\"", "ann") })
        _ = try await store.append(put("4") { ($0.baseETag, $0.principal) = ("\"v1\"", "bob") })
        _ = try await store.append(put("other", "2") { $0.baseETag = "\"w1\"" })
        #expect(try await store.lease(id: "1", now: time.now)?.baseETag == "\"v1\"")
        _ = try await store.transition(id: "1", to: .pending, reason: nil, from: [.inflight], now: time.now)
        try await deliver(store, "1", etag: "\"v2\"")
        #expect(try await store.lease(id: "2", now: time.now)?.baseETag == "\"v2\"")
        _ = try await store.transition(id: "2", to: .pending, reason: nil, from: [.inflight], now: time.now)
        try await deliver(store, "2", etag: "W/\"v3\"")
        #expect(try await store.lease(id: "3", now: time.now)?.baseETag == nil, "a weak ETag cannot be a condition")
        _ = try await store.transition(id: "3", to: .pending, reason: nil, from: [.inflight], now: time.now)
        try await deliver(store, "3", etag: "\"v4\"")
        #expect(try await store.lease(id: "4", now: time.now)?.baseETag == "\"v1\"", "bob has not seen ann's write")
        #expect(try await store.lease(id: "other", now: time.now)?.baseETag == "\"w1\"")
        await store.close()
    }

    /// A delivery after the copy was asked for is not part of the copy, so it is the base; an earlier one is part of it, whatever the clock says.
    @Test(arguments: [(-1, 1), (0, 1), (1, nil)] as [(Int64, Int64?)])
    func aDeliveryNewerThanTheCopyIsTheBase(ticks: Int64, base: Int64?) async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(put("1"))
        try await deliver(store, "1", etag: "\"v2\"")
        let asked = Tick(number: try #require(try await store.operation(id: "1")?.ended).number + ticks)
        time.advance(.seconds(-3_600))
        let second = try await store.append(put("2") { ($0.baseETag, $0.baseIncludes) = ("\"v1\"", asked) })
        #expect(second.baseSequence == base)
        #expect(try await store.lease(id: "2", now: time.now)?.baseETag == (base == nil ? "\"v1\"" : "\"v2\""))
        await store.close()
    }

    /// A write based on a cancelled write takes over the base of the cancelled one.
    @Test func aBaseThatWasTakenBackIsItsOwn() async throws {
        let store = try openData(scratch.state, time)
        for id in ["1", "2", "3", "4"] { _ = try await store.append(put(id) { $0.baseETag = "\"v1\"" }) }
        for id in ["2", "3"] {
            _ = try await store.transition(id: id, to: .cancelled, reason: .cancelled, from: [.pending], now: time.now)
        }
        try await deliver(store, "1", etag: "\"v2\"")
        #expect(try await store.lease(id: "4", now: time.now)?.baseETag == "\"v2\"")
        await store.close()
    }

    @Test func aClientsConditionNamesItsBase() async throws {
        let store = try openData(scratch.state, time)
        for id in ["1", "2"] { _ = try await store.append(put(id)) }
        let third = try await store.append(put("3", "2") { ($0.conditionedOn, $0.takesBase) = ([1, 2], false) })
        #expect(third.baseSequence == 2 && third.needs == [1, 2])
        await store.close()
    }

    // MARK: ids

    private func reference(_ id: LocalID, _ place: LocalIDPlace = .json(JSONPointer(tokens: ["note"]))) -> LocalIDReference {
        LocalIDReference(id: id, place: place)
    }

    @Test(arguments: [false, true]) func theMapIsCommittedWithTheOutcomeAndOutlivesTheProcess(isOfNumbers: Bool) async throws {
        let ids = (1...2).map { isOfNumbers ? LocalID.makeNumber(random: $0) : local($0) }
        let (first, second) = (ids[0], ids[1])
        let store = try openData(scratch.state, time)
        _ = try await store.append(create("1", first))
        _ = try await store.append(create("2", second))
        #expect(store.localIDs.knows(first) && store.localIDs.mapping(of: first) == nil)
        let mapping = ServerMapping(id: ServerID(text: "7", isNumber: true), url: "https://api.example.com/notes/7")
        try await deliver(store, "1", mapping: mapping)
        let crashed = try scratch.copy(scratch.state, to: "crashed")
        await store.close()
        let again = try openData(crashed, time)
        for table in [store.localIDs, again.localIDs] {
            #expect(table.mapping(of: first) == mapping && table.mapping(of: second) == nil && table.knows(second))
            #expect(table.alias(upstream: "notes", collection: "/notes", id: "7") == first)
            #expect(table.alias(upstream: "notes", collection: "/lists", id: "7") == nil)
            #expect(table.alias(upstream: "other", collection: "/notes", id: "7") == nil)
            #expect(!table.knows(local(3)))
            #expect(table.hasNumbers(upstream: "notes", collection: "/notes") && !table.hasNumbers(upstream: "notes", collection: "/lists"))
        }
        #expect(try await again.operation(id: "1")?.serverID == "7")
        await again.close()
    }

    /// Whoever finds a create delivered finds its item under the server's id: else a read shows an item that its client has deleted.
    @Test(.timeLimit(.minutes(1))) func noReaderFindsADeliveredCreateWithoutItsID() async throws {
        let store = try openData(scratch.state, time)
        for number in 1...15 {
            let (id, name) = (local(UInt64(number)), "\(number)")
            _ = try await store.append(create(name, id))
            let reader = Task {
                while try await store.operation(id: name)?.state != .delivered {}
                return store.localIDs.mapping(of: id) != nil
            }
            try await deliver(store, name, mapping: ServerMapping(id: ServerID(text: name), url: "u/\(name)"))
            let isMapped = try await reader.value
            #expect(isMapped, "create \(number)")
        }
        await store.close()
    }

    /// Only a delivery maps a local id, by an attempt or by a probe; a rejected outcome maps nothing.
    @Test func nothingElseMaps() async throws {
        let id = local(1)
        let mapping = ServerMapping(id: ServerID(text: "7"), url: "u")
        let store = try openData(scratch.state, time)
        _ = try await store.append(create("1", id))
        _ = try? await store.finish(
            id: "1", disposition: Disposition(state: .delivered, mapping: mapping), result: nil, attempt: AttemptRecord(sent: .yes),
            now: time.now)
        #expect(store.localIDs.mapping(of: id) == nil, "the operation was not in flight")
        _ = try await store.lease(id: "1", now: time.now)
        _ = try await store.finish(
            id: "1", disposition: Disposition(state: .uncertain, mapping: mapping), result: nil, attempt: AttemptRecord(sent: .maybe),
            now: time.now)
        #expect(store.localIDs.mapping(of: id) == nil)
        _ = try await store.move(
            id: "1", by: Disposition(state: .delivered, reason: .probed, mapping: mapping), from: [.uncertain], now: time.now)
        #expect(store.localIDs.mapping(of: id) == mapping)
        await store.close()
    }

    @Test func edgesSayWhatTheyAre() async throws {
        let id = local(1)
        let store = try openData(scratch.state, time)
        _ = try await store.append(create("create", id))
        _ = try await store.append(put("self", id.text) { $0.references = [self.reference(id, .path(segment: 1))] })
        _ = try await store.append(
            put("child", "9", lane: "c") { $0.references = [self.reference(id, .path(segment: 1)), self.reference(id)] })
        _ = try await store.append(put("apart", "3") { $0.references = [self.reference(self.local(9))] })
        let edges = try await store.database.pool.read {
            try Row.fetchAll($0, sql: "SELECT seq, needs, kind FROM op_dep ORDER BY seq").map {
                "\($0[0] as Int64)>\($0[1] as Int64) \($0[2] as String)"
            }
        }
        #expect(edges == ["2>1 id", "3>1 parent"])
        await store.close()
    }

    @Test func aGroupIsAChainOfItsOwner() async throws {
        let store = try openData(scratch.state, time)
        for (id, principal) in [("1", "ann"), ("2", "bob"), ("3", "ann"), ("4", "ann")] {
            _ = try await store.append(put(id, id) { ($0.group, $0.principal) = ("g", principal) })
        }
        var needs: [Set<Int64>] = []
        for id in ["1", "2", "3", "4"] { needs.append(try await store.operation(id: id)?.needs ?? []) }
        #expect(needs == [[], [], [1], [3]])
        await store.close()
    }

    /// A rejected write leaves no row, no id and no reference.
    @Test func anUnknownDependencyIsRefusedWhole() async throws {
        let id = local(1)
        let store = try openData(scratch.state, time)
        await #expect(throws: DataStoreError.unknownDependency(id: "nobody")) {
            _ = try await store.append(create("1", id) { $0.dependsOn = ["nobody"] })
        }
        let rows = try await store.database.pool.read { db in
            try ["op", "op_dep", "op_ref", "id_map", "sync_log"].map { try Int.fetchOne(db, sql: "SELECT count(*) FROM \($0)") }
        }
        #expect(rows == [0, 0, 0, 0, 0] && !store.localIDs.knows(id))
        #expect(try await store.append(put("2")).sequence > 0, "the next write is accepted")
        await store.close()
    }

    // MARK: holding a lane

    @Test func aHeldLaneWaitsAndNobodyElse() async throws {
        let store = try openData(scratch.state, time)
        for id in ["1", "2", "3"] { _ = try await store.append(put(id)) }
        _ = try await store.append(put("apart", "2"))
        let (until, late) = (time.now + .seconds(30), time.now + .seconds(60))
        try await store.queue.commit {
            try $0.execute(sql: "UPDATE op SET next_at = ? WHERE id = '3'", arguments: [late.milliseconds])
        }
        _ = try await store.lease(id: "1", now: time.now)
        _ = try await store.finish(
            id: "1", disposition: Disposition(state: .delivered, holdsLaneUntil: until), result: nil, attempt: AttemptRecord(sent: .yes),
            now: time.now)
        #expect(try await store.operation(id: "2")?.nextAttemptAt == until)
        #expect(try await store.operation(id: "3")?.nextAttemptAt == late, "a lane hold never makes an operation due sooner")
        #expect(try await store.operation(id: "apart")?.nextAttemptAt == time.now)
        await store.close()
    }

    // MARK: squashing

    private func take(_ store: DataStore, _ new: QueuedWriteDraft) async throws -> QueuedWrite? {
        var new = new
        new.maySquash = true
        return try await store.take(new).squashed
    }

    @Test func twoBecomeOneInOneStep() async throws {
        let store = try openData(scratch.state, time)
        _ = try await take(store, put("1", method: .patch, body: #"{"a":1,"b":1}"#) { $0.baseETag = "\"v1\"" })
        let squashed = try await take(store, put("2", method: .patch, body: #"{"b":2}"#))
        #expect(squashed?.id == "1" && squashed?.state == .superseded && squashed?.reason == .squashed)
        let kept = try #require(try await store.lease(id: "2", now: time.now))
        #expect(kept.body == .inline(Array(#"{"a":1,"b":2}"#.utf8)) && kept.baseETag == "\"v1\"" && kept.idempotencyKey == "key-2")
        await store.close()
    }

    @Test func aPatchOnAPutIsAPut() async throws {
        let store = try openData(scratch.state, time)
        _ = try await take(store, put("1", body: #"{"a":1}"#))
        _ = try await take(
            store, put("2", method: .patch, body: #"{"b":2}"#) { $0.request.fields[.contentType] = "application/merge-patch+json" })
        let kept = try #require(try await store.operation(id: "2"))
        #expect(kept.request.method == .put && kept.request.fields[.contentType] == "application/json")
        #expect(kept.body == .inline(Array(#"{"a":1,"b":2}"#.utf8)) && kept.body.length == 13)
        _ = try await take(store, put("3", method: .delete, body: ""))
        #expect(try await store.operation(id: "3").map { [$0.request.method.rawValue, "\($0.body)"] } == ["DELETE", "none"])
        #expect(try await states(store) == [.superseded, .superseded, .pending])
        await store.close()
    }

    @Test(arguments: [false, true]) func aCreateAndItsDeletionCancelEachOther(_ isEdited: Bool) async throws {
        let (id, store) = (local(1), try openData(scratch.state, time))
        let place = reference(id, .path(segment: 1))
        _ = try await take(store, create("1", id))
        if isEdited { _ = try await take(store, put("e", id.text, method: .patch, body: #"{"b":2}"#) { $0.references = [place] }) }
        _ = try await take(store, put("2", id.text, method: .delete, body: "") { $0.references = [place] })
        #expect(try await states(store) == (isEdited ? [.cancelled, .superseded, .cancelled] : [.cancelled, .cancelled]))
        await store.close()
    }

    enum Hindrance: CaseIterable { case sent, inFlight, dependant, noMerge, laterNoMerge, other, off, between }

    @Test(arguments: Hindrance.allCases)
    func whatMustStayTwoDoes(_ hindrance: Hindrance) async throws {
        let store = try openData(scratch.state, time)
        _ = try await take(store, put("1") { $0.noMerge = hindrance == .noMerge })
        if hindrance == .sent || hindrance == .inFlight { _ = try await store.lease(id: "1", now: time.now) }
        if hindrance == .sent {
            _ = try await store.finish(
                id: "1", disposition: Disposition(state: .pending, nextAttemptAt: time.now), result: nil,
                attempt: AttemptRecord(sent: .maybe), now: time.now)
        }
        if hindrance == .dependant { _ = try await store.append(put("d", "9") { $0.dependsOn = ["1"] }) }
        if hindrance == .between { _ = try await store.append(put("b", method: .post)) }
        var later = put("2", body: #"{"a":2}"#) {
            $0.noMerge = hindrance == .laterNoMerge
            if hindrance == .other { $0.principal = "bob" }
        }
        later.maySquash = hindrance != .off
        #expect(try await store.take(later).squashed == nil)
        #expect(try await states(store).allSatisfy { $0 == .pending || $0 == .inflight })
        #expect(try await store.operation(id: "1")?.body == .inline(Array(#"{"a":1}"#.utf8)))
        await store.close()
    }

    // MARK: lost answers

    @Test(arguments: [
        (AttemptRecord(error: "connection_terminated", sent: .maybe), true), (AttemptRecord(status: 504, sent: .yes), true),
        (AttemptRecord(status: 502, sent: .yes), true), (AttemptRecord(error: "connection_refused", sent: .no), false),
        (AttemptRecord(status: 503, sent: .yes), false), (AttemptRecord(status: 422, sent: .yes), false),
    ])
    func anAnswerThatNeverCameIsRemembered(attempt: AttemptRecord, isLost: Bool) async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(put("1"))
        _ = try await store.lease(id: "1", now: time.now)
        let sent = time.now
        time.advance(.seconds(5))
        let finished = try await store.finish(
            id: "1", disposition: Disposition(state: .pending, nextAttemptAt: time.now), result: nil, attempt: attempt, now: time.now)
        #expect(finished.lostAt == (isLost ? sent : nil))
        await store.close()
    }

    @Test func aCrashWhileSendingIsALostAnswer() async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(put("1"))
        _ = try await store.lease(id: "1", now: time.now)
        let sent = time.now
        let crashed = try scratch.copy(scratch.state, to: "crashed")
        await store.close()
        time.advance(.seconds(5))
        let again = try openData(crashed, time)
        let found = try #require(try await again.operation(id: "1"))
        #expect(found.state == .uncertain && found.reason == .crashed && found.lostAt == sent && found.firstSentAt == sent)
        await again.close()
    }
}
