import GRDB
// Cursors, tombstones, log lines about upcoming conflicts, and the cached entries of a resource per principal (docs/outbox.md#schema,
// docs/outbox.md#delta-pull).
import HTTPTypes
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct DataSyncTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    @Test func aPullIsRecordedWholeAndAgain() async throws {
        var store = try openData(scratch.state, time)
        var scope = PulledScope(name: "u|/n|", cursor: DeltaCursor(issued: "c 1"), syncedAt: time.now, fullAt: time.now, serverCount: 3)
        try await store.recordPull(scope, upstream: "u", type: "/n", gone: ["1", "2"], present: ["3"], now: time.now)
        let first = time.now
        time.advance(.seconds(5))
        try await store.recordPull(
            PulledScope(name: "u|/n|ann"), upstream: "u", type: "/n", gone: ["1"], present: ["2", "9"], now: time.now)
        // A tombstone keeps its first time; a resource that is present again loses its tombstone.
        #expect(try await store.tombstones(upstream: "u", type: "/n") == ["1": first])
        await store.close()
        store = try openData(scratch.state, time)
        #expect(try await store.pulledScopes(prefix: "u|/n|") == [scope, PulledScope(name: "u|/n|ann")])
        (scope.cursor, scope.syncedAt) = (DeltaCursor(issued: "c2"), time.now)
        try await store.recordPull(scope, upstream: "u", type: "/n", gone: [], present: [], now: time.now)
        #expect(try await store.pulledScopes(prefix: "u|/n|").first == scope)
        #expect(try await store.pulledScopes(prefix: "v|").isEmpty)
        #expect(try await store.tombstones(upstream: "u", type: "/m").isEmpty)
        await store.close()
    }

    @Test func aLineIsAddedOnlyWhenItSaysSomethingNew() async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(write("1"))
        for (detail, isNews) in [("a", true), ("a", false), ("b", true), ("a", true)] {
            #expect(try await store.log("conflict-ahead", operation: "1", detail: detail, now: time.now) == isNews)
        }
        #expect(try await store.log("conflict-ahead", operation: "none", detail: "a", now: time.now) == false)
        #expect(try await store.log().prefix(2).map(\.detail) == ["a", "b"])
        await store.close()
    }

    @Test func writesThatMayStillTakeEffectAreTold() async throws {
        let store = try openData(scratch.state, time)
        for id in ["1", "2", "3"] {
            var new = write(id)
            (new.entity, new.lane, new.upstream) = ("/n/\(id)", id, "u")
            new.request.fields[.ifMatch] = id == "1" ? "\"e\"" : id == "2" ? "*" : nil
            _ = try await store.append(new)
        }
        _ = try await store.lease(id: "2", now: time.now)
        let writes = try await store.pendingWrites(upstream: "u")
        #expect(writes.map(\.entity) == ["/n/1", "/n/2", "/n/3"] && writes.map(\.isUnsent) == [true, false, true])
        #expect(writes.map(\.baseETag) == ["\"e\"", nil, nil])
        #expect(try await store.standing(upstream: "u", now: time.now) == (true, false))
        _ = try await store.finish(
            id: "2", disposition: Disposition(state: .delivered),
            result: OperationResult(head: ResponseHead(status: 200, fields: [.eTag: "\"own\""]), body: []),
            attempt: AttemptRecord(sent: .yes),
            now: time.now)
        #expect(try await store.ownETag(upstream: "u", entity: "/n/2") == "\"own\"")
        #expect(try await store.ownETag(upstream: "u", entity: "/n/1") == nil)
        for id in ["1", "3"] {
            _ = try await store.transition(id: id, to: .dead, reason: .rejected, from: [.pending], now: time.now)
        }
        #expect(try await store.pendingWrites(upstream: "u").isEmpty)
        #expect(try await store.standing(upstream: "u", now: time.now) == (false, false))
        await store.close()
    }

    /// A lane is one upstream's, its order is that of the places, and what one principal waits for does not hold back another.
    @Test func whatMayBeSentIsFoundByUpstreamPlaceAndPrincipal() async throws {
        let store = try openData(scratch.state, time)
        func isSending(_ upstream: String) async throws -> Bool { try await store.standing(upstream: upstream, now: time.now).isSending }
        func append(_ id: String, _ upstream: String, _ principal: String, needs: [String] = []) async throws {
            var new = write(id, principal: principal)
            (new.upstream, new.dependsOn) = (upstream, needs)
            _ = try await store.append(new)
        }
        func delay(_ id: String) async throws {
            try await store.queue.commit { try $0.execute(sql: "UPDATE op SET next_at = next_at + 60000 WHERE id = ?", arguments: [id]) }
        }
        // Another upstream's lane of the same name, with an earlier head that waits.
        try await append("a1", "a", "ann")
        try await append("b1", "b", "ann")
        try await delay("a1")
        #expect(try await isSending("a") == false)
        #expect(try await isSending("b"))
        // The edited operation has the first place under the last sequence.
        try await append("b2", "b", "ann")
        var edited = write("b3")
        edited.upstream = "b"
        _ = try await store.replace(id: "b1", by: edited, from: [.pending], now: time.now)
        #expect(try await isSending("b"))
        try await delay("b3")
        #expect(try await isSending("b") == false)
        // One that only has to wait holds back another principal, except a proved one; a parked one holds back its own alone.
        try await append("b4", "b", "bob")
        #expect(try await isSending("b") == false)
        try await store.queue.commit { try $0.execute(sql: "INSERT INTO proved (token, principal, at) VALUES (x'00', 'bob', 0)") }
        #expect(try await isSending("b"))
        try await store.queue.commit { try $0.execute(sql: "DELETE FROM proved") }
        try await store.force("b3", .parked)
        try await store.queue.commit { try $0.execute(sql: "UPDATE op SET reason = 'auth' WHERE id = 'b3'") }
        #expect(try await isSending("b"))
        try await delay("b4")
        #expect(try await isSending("b") == false)
        // One that needs another is not due before that one has ended.
        try await append("c1", "c", "ann", needs: ["a1"])
        #expect(try await isSending("c") == false)
        try await store.force("a1", .delivered)
        #expect(try await isSending("c"))
        try await store.force("c1", .conflicted)
        #expect(try await store.standing(upstream: "c", now: time.now) == (false, true))
        await store.close()
    }

    @Test func whatIsCachedIsListedByPartition() async throws {
        let store = try openCache(scratch.cache, time)
        for (target, identity) in [("/n", ""), ("/n/1", "ann"), ("/n/1", ""), ("/n?q", "ann"), ("/m", "bob")] {
            try await store.put(target, [1], at: time.now, identity: identity)
        }
        let prefix = origin.url + "/n"
        #expect(try await store.partitions(prefix: prefix) == ["", "ann"])
        #expect(try await store.urls(prefix: prefix) == ["/n", "/n/1", "/n?q"].map { origin.url + $0 })
        #expect(try await store.urls(prefix: prefix, in: .identity("ann")) == ["/n/1", "/n?q"].map { origin.url + $0 })
        try await store.remove(keys: [key("/n/1", identity: "ann"), key("/none")])
        #expect(try await store.lookup(key("/n/1", identity: "ann")).isEmpty)
        #expect(try await store.lookup(key("/n/1")).count == 1)
        await store.close()
    }
}
