// Where the two databases of a node meet: a transaction is bound to its connection, a row that PostgreSQL refuses concerns only itself, and a
// server is known by its history (docs/fleet.md).
import Foundation
import GRDB
import RockpoolCore
import RockpoolTesting
import Testing

@testable import RockpoolStore

@Suite(.enabled(if: PostgreSQLServer.programs != nil, "postgresql is not installed"), .serialized, .timeLimit(.minutes(5)))
struct FleetTruthTests: FleetCase {
    let scratch: Scratch
    let time = ManualTime()
    let server: PostgreSQLServer

    init() throws {
        scratch = try Scratch()
        server = try PostgreSQLServer()
    }

    // MARK: one connection

    private func endConnections(_ condition: String) throws {
        try server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rockpool/a' AND \(condition)")
    }

    /// Waits, on the writer's thread, until the node has joined again on new connections.
    /// - Parameter isBusy: true to use the transaction meanwhile: the server ends one that does nothing.
    private func waitForJoining(_ store: DataStore, after epoch: ContinuousClock.Instant, isBusy: Bool) throws {
        let end = ContinuousClock.now + .seconds(10)
        while .now < end, store.fleet?.absence != nil || store.fleetReplica?.log.lease?.renewedAt ?? epoch <= epoch {
            Thread.sleep(forTimeInterval: 0.02)
            if isBusy { _ = try store.fleetReplica?.log.run("SELECT 1") }
        }
    }

    @Test func aTransactionStaysOnItsConnectionWhenTheOtherOneEnds() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        _ = try await a.append(write("1"))
        try await a.queue.commit { [self] db in
            try db.execute(sql: "UPDATE op SET priority = 7 WHERE id = '1'")
            let begun = ContinuousClock.now
            // The writer's own is in its transaction.
            try endConnections("state = 'idle'")
            try waitForJoining(a, after: begun, isBusy: true)
        }
        try await b.catchUp()
        #expect(try await b.operation(id: "1")?.priority == 7)
        await a.close()
        await b.close()
    }

    @Test func nothingOfATransactionRunsOnAnotherConnection() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        _ = try await a.append(write("1"))
        await #expect(throws: DataStoreError.self) {
            try await a.queue.commit { [self] db in
                try db.execute(sql: "UPDATE op SET priority = 7 WHERE id = '1'")
                let begun = ContinuousClock.now
                try endConnections("true")
                try waitForJoining(a, after: begun, isBusy: false)
            }
        }
        try await b.catchUp()
        #expect(try await b.operation(id: "1")?.priority == 0)
        try await until { (try? await a.append(write("2"))) != nil }
        #expect(try await open(b) == ["1", "2"])
        await a.close()
        await b.close()
    }

    @Test func aRowOfAnotherOperationIsNotOverwritten() async throws {
        let a = try await node("a")
        _ = try await a.append(write("1"))
        try server.sql("UPDATE rockpool.item SET id = 'theirs' WHERE id = '1'")
        await #expect(throws: DataStoreError.self) {
            try await a.transition(id: "1", to: .cancelled, reason: .discarded, from: [.pending], now: time.now)
        }
        try server.sql("DO $$ BEGIN ASSERT (SELECT count(*) FROM rockpool.item WHERE id = 'theirs' AND state = 'pending') = 1; END $$")
        await a.close()
    }

    // MARK: rows that are refused

    private func refuse(_ ids: String) throws {
        try server.sql("ALTER TABLE rockpool.item ADD CONSTRAINT refused CHECK (id NOT IN (\(ids)) OR id IS NULL) NOT VALID")
    }

    @Test func aHeldWriteThatIsRefusedIsDeadAndTheOthersAreHandedOver() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        try refuse("'bad', 'worse'")
        try server.stop()
        try await until { a.fleet?.absence != nil && b.fleet?.absence != nil }
        let ids = (1...20).map { "\($0)" }
        for id in ids {
            _ = try await a.append(write(id))
            if id == "7" { _ = try await a.append(write("bad")) }
            if id == "20" { _ = try await a.append(write("worse")) }
        }
        try server.start()
        try await until { (try? await open(b)) == ids }
        try await until { a.fleet?.held == 0 }
        for id in ["bad", "worse"] {
            try await until { (try? await a.operation(id: id))?.state == .dead }
            let kept = try #require(try await a.operation(id: id))
            #expect(kept.reason == .unshared && a.holder(of: kept) == "a")
        }
        #expect(try await b.operation(id: "bad") == nil)
        // What comes later is shared as before, and the log has no number of the held range.
        _ = try await a.append(write("21"))
        #expect(try await open(b) == ids + ["21"])
        #expect(
            try await b.database.pool.read { try Int64.fetchOne($0, sql: "SELECT max(max(n), max(seq)) FROM sync_log") ?? 0 }
                < HeldOperations.first)
        // A person has it sent again once the cause is gone.
        try server.sql("ALTER TABLE rockpool.item DROP CONSTRAINT refused")
        _ = try await a.transition(id: "bad", to: .pending, reason: nil, from: [.dead], now: time.now)
        try await until { (try? await open(b).contains("bad")) == true }
        #expect(try await a.operation(id: "bad")?.sequence == b.operation(id: "bad")?.sequence)
        await a.close()
        await b.close()
    }

    /// What is refused stands beyond every number of the fleet, which go on below it; nothing that other nodes have names it.
    @Test func nothingSharedRefersToWhatIsRefused() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        try refuse("'bad', 'worse'")
        try server.stop()
        try await until { a.fleet?.absence != nil && b.fleet?.absence != nil }
        for id in ["bad", "1", "worse"] { _ = try await a.append(write(id, lane: id)) }
        try server.start()
        try await until { (try? await open(b)) == ["1"] }
        try await until { a.fleet?.held == 0 }
        var needing = write("needing", lane: "needing")
        needing.dependsOn = ["bad"]
        await #expect { try await a.append(needing) } throws: { "\($0)".contains("only this node has") }
        // A note about it takes no number of the fleet's log from another node.
        #expect(try await a.log("noted", operation: "bad", detail: "here", now: time.now))
        _ = try await b.append(write("2", lane: "2"))
        try await a.catchUp()
        _ = try await a.append(write("3", lane: "3"))
        #expect(try await open(b) == ["1", "2", "3"])
        let lines =
            "SELECT count(*) FROM sync_log JOIN op USING (seq) WHERE id = 'bad' AND event = 'noted' AND n >= \(HeldOperations.first)"
        #expect(try await a.reading { try Int.fetchOne($0, sql: lines) } == 1)
        #expect(try await a.reading { try OutboxCensus(in: $0) } == b.reading { try OutboxCensus(in: $0) })
        // The later one is offered first; what was handed over before stays known as that.
        try server.sql("ALTER TABLE rockpool.item DROP CONSTRAINT refused")
        for (id, count) in [("worse", 4), ("bad", 5)] {
            let held = try #require(try await a.operation(id: id))
            _ = try await a.transition(id: id, to: .pending, reason: nil, from: [.dead], now: time.now)
            try await until { (try? await open(b).count) == count }
            try await until { a.isHandedOver(held.sequence) && a.isHandedOver(HeldOperations.first + 1) }
        }
        await a.close()
        await b.close()
    }

    @Test func theLogIsTrimmedByItsOwnNumbersBesideThoseOfWhatIsRefused() async throws {
        let a = try await node("a")
        try refuse("'bad'")
        try server.stop()
        try await until { a.fleet?.absence != nil }
        for id in ["1", "bad"] { _ = try await a.append(write(id)) }
        try server.start()
        try await until { try await a.operation(id: "bad")?.state == .dead }
        let before = try await a.reading { try Int.fetchOne($0, sql: "SELECT count(*) FROM sync_log") }
        try await a.trimLog(before: .distantPast)
        #expect(try await a.reading { try Int.fetchOne($0, sql: "SELECT count(*) FROM sync_log") } == before)
        await a.close()
    }

    @Test func anOutboxWithARowThatIsRefusedJoinsWithoutIt() async throws {
        let first = try await node("a")
        await first.close()
        try refuse("'bad'")
        try server.sql("DELETE FROM rockpool.item; DELETE FROM rockpool.node")
        let single = try openData("\(scratch.path)/b", time)
        for id in ["1", "bad", "2"] { _ = try await single.append(write(id)) }
        await single.close()
        let b = try await node("b")
        try await until { try await b.operation(id: "bad")?.state == .dead }
        try await until { b.fleet?.held == 0 }
        let c = try await node("c")
        #expect(try await open(c) == ["1", "2"])
        await b.close()
        await c.close()
    }

    @Test func textsThatPostgreSQLHasNoFormForAreTaken() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        _ = try await a.append(write("1", lane: "a\0b", clientKey: "k\0", principal: "me"))
        _ = try await a.append(write("2", lane: "日本", clientKey: "日本", principal: "me"))
        #expect(try await open(b) == ["1", "2"])
        for id in ["1", "2"] { _ = try #require(try await b.lease(id: id, now: time.now)) }
        #expect(try await b.fleetPlaces(of: b.openOperations()).values.compactMap(\.sentBy) == ["b", "b"])
        await a.close()
        await b.close()
    }

    @Test func aDatabaseThatHasNotEveryCharacterIsRefused() async throws {
        try server.sql("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'", in: "postgres")
        var settings = server.settings("a")
        settings.url = settings.url?.replacing("/rockpool?", with: "/latin?")
        let a = try DataStore.open(
            directory: "\(scratch.path)/a", settings: storage(), outbox: settings, clock: { [time] in time.now }, logger: quiet)
        try await until { a.fleet?.absence?.contains("LATIN1") == true }
        // It will never have a way to its fleet: nothing is accepted that would stay here.
        #expect(a.fleet?.hasEnded == true)
        await #expect(throws: DataStoreError.self) { try await a.append(write("1")) }
        await a.close()
    }

    // MARK: the history of the server

    @Test func anOlderCopyThatHasGoneOnIsKnownByItsHistory() async throws {
        let (a, b) = (try await node("a", .refuse), try await node("b", .refuse))
        _ = try await a.append(write("1"))
        try await b.catchUp()
        await b.close()
        try server.keepCopy()
        try await until { a.fleet?.absence == nil && a.maySend }
        for n in 2...5 { _ = try await a.append(write("\(n)")) }
        try server.restoreCopy()
        try await until { a.fleet?.hasEnded == true }
        // One that has not seen what is lost goes on, to numbers beyond those that the other has seen.
        let again = try await node("b", .refuse)
        for n in 10...30 { _ = try await again.append(write("\(n)")) }
        try await Task.sleep(for: .seconds(2))
        #expect(a.fleet?.absence?.contains("other changes") == true, "\(a.fleet?.absence ?? "none")")
        await #expect(throws: DataStoreError.self) { try await a.append(write("6")) }
        #expect(try await open(again).contains("2") == false)
        await a.close()
        await again.close()
    }

    @Test func aCommitWaitsForTheDiskWhateverTheServerIsToldMeanwhile() async throws {
        let a = try await node("a")
        try await a.queue.commit { [server] db in
            try server.sql("ALTER SYSTEM SET synchronous_commit = off", in: "postgres")
            try server.sql("SELECT pg_reload_conf()", in: "postgres")
            Thread.sleep(forTimeInterval: 0.3)
            let waits = try a.fleetReplica?.log.run("SELECT current_setting('synchronous_commit')").first?.first?.text
            #expect(waits == "on")
        }
        try await a.queue.commit { _ in
            let waits = try a.fleetReplica?.log.run("SELECT current_setting('synchronous_commit')").first?.first?.text
            #expect(waits == "on")
        }
        await a.close()
    }

    @Test func aReplicaOfAnEarlierVersionKnowsNoWordYet() async throws {
        let a = try await node("a")
        _ = try await a.append(write("1"))
        await a.close()
        // As a node and a database of the version before.
        try await DatabaseQueue(path: "\(scratch.path)/a/data.sqlite").write {
            try $0.execute(sql: "ALTER TABLE fleet_state DROP COLUMN word; DROP TABLE fleet_kept")
        }
        try server.sql("DROP TABLE rockpool.word")
        let again = try await node("a")
        #expect(try await open(again) == ["1"])
        _ = try await again.append(write("2"))
        try server.sql("DO $$ BEGIN ASSERT (SELECT count(*) FROM rockpool.word) > 0; END $$")
        await again.close()
    }
}
