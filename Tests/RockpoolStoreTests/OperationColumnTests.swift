// The table of columns is complete, and INSERT, SELECT, reading and edits agree with it (docs/outbox.md#schema).
import Foundation
import GRDB
import HTTPTypes
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct OperationColumnTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    /// Sets every property.
    private func full() -> QueuedWriteDraft {
        var new = write("1", fields: [.contentType: "application/json"], lane: "full", clientKey: "mine", principal: "me")
        let (sent, local) = (time.now - .seconds(3), LocalID.make(now: time.now, random: (1, 2)))
        new.priority = -5
        new.nextAttemptAt = time.now + .seconds(5)
        new.expiresAt = time.now + .hours(1)
        (new.state, new.reason, new.firstSentAt, new.lastError) = (.uncertain, .lostAnswer, sent, "connection_terminated")
        (new.collection, new.entityID, new.localID) = ("/v1/notes", "1", local)
        new.references = [LocalIDReference(id: local, place: .body)]
        (new.dependsOn, new.group, new.noMerge, new.maySquash, new.action) = (["0"], "g", true, true, "publish")
        new.base = Conflict.Side(body: [1], contentType: "a/b", etag: "\"a\"")
        (new.begun, new.baseIncludes) = (Tick(number: 3), Tick(number: 2))
        (new.baseETag, new.conditionedOn, new.takesBase) = ("\"a\"", [1], true)
        (new.share, new.upstreamLimit, new.queueLimit) = (.unproved, .mb(1), .mb(1))
        new.baseSeen = BaseSeen(at: time.now, source: .cache, version: "\"a b\"")
        new.viewer = Viewer.Program(number: -7)
        new.reach = Reach(program: Viewer.Program(number: -7), until: 1)
        return new
    }

    /// The operation that `full` becomes after one other.
    private func taken(_ new: QueuedWriteDraft) -> QueuedWrite {
        var operation = QueuedWrite(
            sequence: 2, id: "1", state: .uncertain, reason: .lostAnswer, request: new.request, body: new.body, upstream: "notes",
            entity: "/v1/notes/1", lane: "full", idempotencyKey: "mine", keyIsClients: true, principal: "me", priority: -5,
            acceptedAt: time.now, firstSentAt: new.firstSentAt, nextAttemptAt: time.now + .seconds(5), expiresAt: new.expiresAt,
            lastError: "connection_terminated")
        (operation.collection, operation.entityID, operation.localID) = ("/v1/notes", "1", new.localID)
        (operation.noMerge, operation.isUnproved, operation.lostAt) = (true, true, new.firstSentAt)
        (operation.baseETag, operation.baseSequence) = ("\"a\"", 1)
        (operation.viewer, operation.baseSeen, operation.begun) = (new.viewer, new.baseSeen, new.begun)
        operation.needs = [1]
        return operation
    }

    @Test func everyColumnOfTheSchemaIsDescribedOnce() async throws {
        let store = try openData(scratch.state, time)
        let schema = try await store.database.pool.read { db in
            try String.fetchAll(db, sql: "SELECT name FROM pragma_table_info('op')")
        }
        #expect(OperationColumn.table.map(\.name).sorted() == schema.sorted())
        await store.close()
    }

    /// A property added to `QueuedWriteDraft` must be set in `full` and expected in `taken`.
    @Test func theFullOperationHasEveryProperty() {
        for property in Mirror(reflecting: full()).children {
            let value = Mirror(reflecting: property.value)
            guard value.displayStyle == .optional || value.displayStyle == .collection else { continue }
            #expect(!value.children.isEmpty, "\(property.label ?? "a property") is not set")
        }
    }

    @Test func anOperationIsReadBackAsItWasAccepted() async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(write("0"))
        let new = full()
        var operation = taken(new)
        #expect(try await store.append(new) == operation)
        #expect(try await store.operation(id: "1") == operation)
        operation.unreadBodyBytes = operation.body.length
        operation.body = .none
        #expect(try await store.operations().items.last == operation)
        await store.close()
    }

    @Test func anEditInheritsWhatItDoesNotReplace() async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(write("0"))
        var new = full()
        (new.state, new.reason, new.firstSentAt) = (.pending, nil, nil)
        let old = try await store.append(new)
        let edited = try await store.replace(id: "1", by: write("2"), from: [.pending], now: time.now)
        #expect(edited.sequence == 3 && edited.place == 2 && edited.lane == "full" && edited.principal == "me" && edited.priority == -5)
        #expect(edited.expiresAt == old.expiresAt && edited.noMerge && edited.isUnproved && edited.needs == [1])
        #expect(edited.collection == "/v1/notes" && edited.entityID == "1" && edited.localID == old.localID)
        #expect(edited.baseETag == "\"a\"" && edited.baseSequence == 1)
        #expect(try await store.base(of: 3) == new.base)
        #expect(edited.entity == "/v1/notes/2" && edited.idempotencyKey == "key-2" && !edited.keyIsClients && edited.lastError == nil)
        await store.close()
    }

    @Test(arguments: [
        ("origin = 'gopher'", "origin"), ("method = 'a b'", "method"), ("headers = x'00'", "headers"),
        ("resp_status = 200", "resp_headers"),
    ])
    func anErrorNamesItsColumn(_ change: String, _ name: String) async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(write("1"))
        try await store.queue.commit { try $0.execute(sql: "UPDATE op SET \(change)") }
        let error = try await #require(throws: UnreadableRow.self) { try await store.operation(id: "1") }
        #expect(error.name == name && OperationRow.values[error.column].name == name)
        await store.close()
    }
}
