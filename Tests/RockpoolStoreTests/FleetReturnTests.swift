// A node that its fleet refuses comes back with what it has; what several nodes bring is one (docs/fleet.md#coming-back).
import Foundation
import GRDB
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

@testable import RockpoolStore

@Suite(.enabled(if: PostgreSQLServer.programs != nil, "postgresql is not installed"), .serialized, .timeLimit(.minutes(5)))
struct FleetReturnTests: FleetCase {
    let scratch: Scratch
    let time = ManualTime()
    let server: PostgreSQLServer

    init() throws {
        scratch = try Scratch()
        server = try PostgreSQLServer()
    }

    private func rejoin(_ name: String) async throws -> RejoinOffer {
        try await DataStore.rejoin("\(scratch.path)/\(name)", settings: storage(), clock: { [time] in time.now }, logger: quiet)
    }

    @Test func whatAnOlderCopyLacksComesBackUnderTheSameIDs() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        for id in ["1", "2"] { _ = try await a.append(write(id, lane: id)) }
        try server.keepCopy()
        try await until { a.fleet?.absence == nil && b.fleet?.absence == nil && a.maySend && b.maySend }
        // Both see what will be lost.
        for id in ["3", "4"] { _ = try await a.append(write(id, lane: id, clientKey: "key \(id)", principal: "me")) }
        #expect(try await open(b) == ["1", "2", "3", "4"])
        try server.restoreCopy()
        try await until { a.fleet?.hasEnded == true && b.fleet?.hasEnded == true }
        for store in [a, b] {
            await #expect(throws: DataStoreError.self) { try await store.append(write("refused")) }
            await store.close()
        }
        #expect(try await rejoin("a") == RejoinOffer(held: 0, seen: 4))
        #expect(try await rejoin("b") == RejoinOffer(held: 0, seen: 4))
        let (again, other) = (try await node("a"), try await node("b"))
        try await until { again.fleet?.held == 0 && other.fleet?.held == 0 }
        // What the server has is as it was; what it lacked may have been sent.
        for store in [again, other] {
            #expect(try await open(store) == ["1", "2", "3", "4"])
            for (id, state) in [("1", OperationState.pending), ("2", .pending), ("3", .uncertain), ("4", .uncertain)] {
                let operation = try #require(try await store.operation(id: id))
                #expect(operation.state == state, "\(id)")
                #expect((operation.firstSentAt == nil) == (state == .pending), "\(id)")
            }
        }
        #expect(try await again.fleetNodes().count == 4)
        // The key of a client still names its write.
        await #expect(throws: DataStoreError.duplicateKey(id: "3")) {
            try await other.append(write("new", clientKey: "key 3", principal: "me"))
        }
        _ = try await again.append(write("5"))
        #expect(try await open(other).last == "5")
        await again.close()
        await other.close()
    }

    @Test func whatOnlyThisNodeHadWaitsAsBefore() async throws {
        let a = try await node("a")
        _ = try await a.append(write("1"))
        try server.stop()
        try await until { a.fleet?.absence != nil }
        _ = try await a.append(write("held"))
        await a.close()
        try server.start()
        // As if it had been away for months, while others went on.
        let b = try await node("b")
        try await deliver(#require(try await b.lease(id: "1", now: time.now)).id, at: b)
        try server.sql("UPDATE rockpool.meta SET value = '1000000' WHERE name = 'pruned'")
        let refused = try DataStore.open(
            directory: "\(scratch.path)/a", settings: storage(), outbox: server.settings("a"), clock: { [time] in time.now }, logger: quiet)
        try await until { refused.fleet?.absence?.contains("rockpool fleet rejoin") == true }
        await refused.close()
        #expect(try await rejoin("a") == RejoinOffer(held: 1, seen: 1))
        // Again, before the start: nothing is doubled.
        #expect(try await rejoin("a") == RejoinOffer(held: 1, seen: 1))
        let again = try await node("a")
        try await until { (try? await open(b)) == ["held"] }
        #expect(try await b.operation(id: "held")?.state == .pending)
        #expect(try await again.operation(id: "1")?.state == .delivered)
        await again.close()
        await b.close()
    }

    @Test func anExportThatOneNodeTakesInIsTheFleets() async throws {
        let alone = try openData("\(scratch.path)/alone", time)
        _ = try await alone.append(write("1", body: blob(2_000_000, in: alone), clientKey: "mine", principal: "me"))
        _ = try await alone.append(write("2", lane: "done"))
        try await deliver(#require(try await alone.lease(id: "2", now: time.now)).id, at: alone)
        var lines: [PortableOperation] = []
        for id in ["1", "2"] {
            let operation = try #require(try await alone.operation(id: id))
            lines.append(try PortableOperation(try await alone.line(of: operation, withSecrets: true)))
        }
        await alone.close()
        let (a, b) = (try await node("a"), try await node("b"))
        #expect(try await a.takeIn(lines).operations.map(\.id) == ["1", "2"])
        #expect(try await b.takeIn(lines).there == 2)
        #expect(try await open(b) == ["1"])
        let there = try #require(try await b.operation(id: "1"))
        #expect(try await b.bytes(of: there.body) == bytes(2_000_000))
        #expect(try await b.operation(id: "2")?.state == .delivered)
        await #expect(throws: DataStoreError.duplicateKey(id: "1")) {
            try await b.append(write("3", clientKey: "mine", principal: "me"))
        }
        #expect(try await a.reading { try OutboxCensus(in: $0) } == b.reading { try OutboxCensus(in: $0) })
        await a.close()
        await b.close()
    }

    @Test func whatIsOutOfDateAtOneNodeIsToldToTheOthers() async throws {
        let (a, b) = (try await node("a", .refuse), try await node("b"))
        let own = Mutex<Set<StalePlace>>([])
        let told = Mutex<Set<StalePlace>>([])
        a.onForeignChanges { change in own.withLock { $0.formUnion(change.stale) } }
        b.onForeignChanges { change in told.withLock { $0.formUnion(change.stale) } }
        var purge = CacheSelection()
        (purge.urls, purge.groups, purge.glob, purge.storedBefore) = (["https://a/b"], ["x"], "https://a/*", time.now)
        purge.origin = OriginAddress(scheme: .https, host: "a", port: 8443)
        #expect(CacheSelection(text: purge.text) == purge)
        let places: Set<StalePlace> = [
            .url("https://a/" + String(repeating: "x", count: 3000)), .tree("https://a/b/"), .group("x", origin: "https://a"),
            .purge(purge.text),
        ]
        try await a.share(places)
        try await until { told.withLock(\.self) == places }
        // The same again, and once the first is old.
        told.withLock { $0 = [] }
        time.advance(.hours(25))
        try await a.share([.tree("https://a/b/")])
        try await until { told.withLock(\.self) == [.tree("https://a/b/")] }
        try await b.catchUp()
        for store in [a, b] {
            #expect(try await store.reading { try Int.fetchOne($0, sql: "SELECT count(*) FROM fleet_stale") } == 1)
        }
        let echo = own.withLock(\.self)
        #expect(echo.isEmpty)
        try server.stop()
        try await until { a.fleet?.absence != nil }
        await #expect(throws: DataStoreError.self) { try await a.share(places) }
        await a.close()
        await b.close()
    }

    @Test func aNodeThatIsGoneIsForgotten() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        let id = try #require(b.fleet?.node)
        await #expect(throws: DataStoreError.self) { try await a.forgetNode(id) }
        await b.close()
        try await until { try await a.fleetNodes().contains { $0.id == id && $0.state == .gone } }
        #expect(try await a.forgetNode("nobody") == false)
        #expect(try await a.forgetNode(id))
        #expect(try await a.fleetNodes().map(\.name) == ["a"])
        // It comes back by a start.
        let again = try await node("b")
        _ = try await again.append(write("1"))
        #expect(try await open(a) == ["1"])
        #expect(try await a.fleetNodes().count == 2)
        await a.close()
        await again.close()
    }

    /// Nodes whose settings differ say so, until they agree or one is gone.
    @Test func differingSettingsAreNamed() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        a.take(AgreedSettings(values: ["secrets": "[]", "upstreams.notes.order": "entity"]))
        b.take(AgreedSettings(values: ["secrets": "[]", "upstreams.notes.order": "global"]))
        let id = try #require(b.fleet?.node)
        try await until {
            a.fleet?.differences == [FleetDifference(node: id, name: "b", keys: ["upstreams.notes.order"])]
                && b.fleet?.differences.map(\.name) == ["a"]
        }
        b.take(AgreedSettings(values: ["secrets": "[]", "upstreams.notes.order": "entity"]))
        try await until { a.fleet?.differences == [] && b.fleet?.differences == [] }
        b.take(AgreedSettings(values: ["secrets": "[\"sig\"]"]))
        try await until { a.fleet?.differences.first?.keys == ["secrets", "upstreams.notes.order"] }
        await b.close()
        try await until { a.fleet?.differences == [] }
        await a.close()
    }

    @Test func anOutboxOfItsOwnHasNoFleetToComeBackTo() async throws {
        await (try openData("\(scratch.path)/a", time)).close()
        await #expect { try await rejoin("a") } throws: { "\($0)".contains("is in no fleet") }
    }

    @Test func equalWritesOfOneKeyThatTwoNodesHoldHaveOneEffect() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        try server.stop()
        try await until { a.fleet?.absence != nil && b.fleet?.absence != nil }
        for (id, store) in [("1", a), ("2", b)] {
            _ = try await store.append(write(id, clientKey: "mine", principal: "me"))
            // Another body under one key: both were accepted, and are sent.
            _ = try await store.append(write("\(id)x", body: .inline(Array(id.utf8)), clientKey: "other", principal: "me"))
            // What another write needs is sent.
            _ = try await store.append(write("\(id)y", clientKey: "third", principal: "me"))
            var next = write("\(id)z", lane: "z")
            next.dependsOn = ["\(id)y"]
            _ = try await store.append(next)
        }
        try server.start()
        try await until { a.fleet?.held == 0 && b.fleet?.held == 0 }
        try await until { try await open(a) == open(b) }
        let ids = try await open(a)
        #expect(ids.count == 7 && Set(ids).isSuperset(of: ["1x", "2x", "1y", "2y", "1z", "2z"]), "\(ids)")
        let ended = ids.contains("1") ? "2" : "1"
        for store in [a, b] {
            let operation = try #require(try await store.operation(id: ended))
            #expect(operation.state == .superseded && operation.reason == .squashed)
        }
        #expect(try await a.reading { try OutboxCensus(in: $0) } == b.reading { try OutboxCensus(in: $0) })
        await a.close()
        await b.close()
    }
}
