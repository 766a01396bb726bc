// Two nodes that share one outbox on a real PostgreSQL (docs/fleet.md). Skipped where PostgreSQL is missing.
import Foundation
import GRDB
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolTesting
import Testing

@testable import RockpoolStore

@Suite(.enabled(if: PostgreSQLServer.programs != nil, "postgresql is not installed"), .serialized, .timeLimit(.minutes(5)))
struct FleetStoreTests: FleetCase {
    let scratch: Scratch
    let time = ManualTime()
    let server: PostgreSQLServer

    init() throws {
        scratch = try Scratch()
        server = try PostgreSQLServer()
    }

    @Test func whatOneNodeTakesTheOtherHasAndSendsInTheSameOrder() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        for id in ["1", "2", "3"] { _ = try await (id == "2" ? b : a).append(write(id, body: .inline(bytes(5000)))) }
        #expect(try await open(a) == ["1", "2", "3"])
        #expect(try await open(b) == ["1", "2", "3"])
        // All but its moments, which follow the database's clock while the tests' own stands.
        let (mine, theirs) = (try #require(try await a.operation(id: "1")), try #require(try await b.operation(id: "1")))
        #expect(theirs.body == mine.body && theirs.sequence == mine.sequence && theirs.state == mine.state)
        #expect(theirs.lane == mine.lane && theirs.principal == mine.principal && theirs.idempotencyKey == mine.idempotencyKey)
        // The same numbers everywhere: a node that leaves has all.
        #expect(try await a.openOperations().map(\.sequence) == b.openOperations().map(\.sequence))
        _ = try #require(try await b.lease(id: "1", now: time.now))
        try await deliver("1", at: b)
        #expect(try await open(a) == ["2", "3"])
        #expect(try await a.attempts(of: #require(try await a.operation(id: "1"))).map(\.status) == [200])
        await a.close()
        await b.close()
    }

    /// Rows are exchanged as each node stores them.
    @Test func secretsOfFieldsAreSealedInTheFleet() async throws {
        let (request, answer) = SealTests.secretFields
        let (a, b) = (try await node("a"), try await node("b"))
        _ = try await a.append(write("1", fields: request))
        _ = try #require(try await a.lease(id: "1", now: time.now))
        _ = try await a.finish(
            id: "1", disposition: Disposition(state: .delivered),
            result: OperationResult(head: ResponseHead(status: 201, fields: answer), body: []), attempt: AttemptRecord(sent: .yes),
            now: time.now)
        #expect(try await open(b) == [])
        let there = try #require(try await b.operation(id: "1"))
        #expect(there.request.fields == request && there.result?.head.fields == answer)
        let stored = try await b.database.pool.read {
            try Data.fetchAll($0, sql: "SELECT headers FROM op UNION ALL SELECT resp_headers FROM op")
        }
        #expect(stored.count == 2)
        for bytes in stored {
            #expect(bytes.range(of: Data("~sealed.".utf8)) != nil && bytes.range(of: Data("planted".utf8)) == nil)
        }
        await a.close()
        await b.close()
    }

    @Test func whatHasBeenToldIsNotedWithoutTheFleet() async throws {
        let a = try await node("a", .refuse)
        try server.stop()
        try await a.setJournalPosition(7)
        #expect(try await a.journalPosition().announced == 7)
        await a.close()
    }

    @Test func aNewNodeReadsAllAndALargeBodyToo() async throws {
        let a = try await node("a")
        let writer = try await a.blobWriter(expectedLength: nil)
        try await writer.append(ByteBuffer(bytes: bytes(2_500_000)))
        let body = try await writer.finish()
        _ = try await a.append(write("1", body: body))
        let b = try await node("b")
        #expect(try await open(b) == ["1"])
        let files = Scratch.files(under: "\(scratch.path)/b/blobs")
        #expect(try files.map { try Array(Data(contentsOf: URL(fileURLWithPath: $0))) } == [bytes(2_500_000)])
        await a.close()
        await b.close()
    }

    @Test func aNumberIsNotUsedAgainWhenItsRowIsGone() async throws {
        let a = try await node("a")
        for id in ["1", "2", "3"] { _ = try await a.append(write(id)) }
        // While the last row is there, its number needs no item: each transaction would change it.
        try server.sql(
            "DO $$ BEGIN ASSERT NOT EXISTS (SELECT FROM rockpool.item WHERE tbl = 'sqlite_sequence' AND key = 'op'::bytea); END $$")
        try await a.queue.commit { try $0.execute(sql: "DELETE FROM op WHERE id IN ('2', '3')") }
        let b = try await node("b")
        #expect(try await b.append(write("4")).sequence == 4)
        #expect(try await a.append(write("5")).sequence == 5)
        await a.close()
        await b.close()
    }

    @Test func theCountOfDeliveriesIsOneRowThatGetsAnotherKeyNowAndThen() async throws {
        let a = try await node("a")
        let ids = (1...70).map { "\($0)" }
        for id in ids { _ = try await a.append(write(id, lane: id)) }
        for id in ids {
            _ = try #require(try await a.lease(id: id, now: time.now))
            try await deliver(id, at: a)
        }
        let rows = "SELECT FROM rockpool.item WHERE tbl = 'total' AND convert_from(substr(key, 2, 4), 'UTF8') = 'name'"
        try server.sql("DO $$ BEGIN ASSERT (SELECT count(*) FROM (\(rows)) AS t) = 1; END $$")
        let b = try await node("b")
        try await b.catchUp()
        #expect(try await b.deliveredTotal() == 70)
        await a.close()
        await b.close()
    }

    /// PostgreSQL refuses index entries beyond 2,704 bytes, and with one the whole batch.
    @Test func longLanesKeysAndPlacesAreThoseOfTheOthersToo() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        let long = { (number: Int) in
            String((0..<9_000).map { "abcdefghijklmnopqrstuvwxyz".utf8.map { Character(UnicodeScalar($0)) }[($0 * $0 / 7 + number) % 26] })
        }
        let lanes = [long(1), long(1) + "x"]
        for (number, lane) in lanes.enumerated() { _ = try await a.append(write("\(number)", lane: lane, clientKey: long(2 + number))) }
        let seq = try #require(try await a.operation(id: "0")).sequence
        let place = long(7)
        try await a.queue.commit { try $0.execute(sql: "INSERT INTO op_ref VALUES (?, 'loc', ?)", arguments: [seq, place]) }
        #expect(try await open(b) == ["0", "1"])
        #expect(try await b.operation(id: "0")?.lane == lanes[0])
        func places(_ store: DataStore) async throws -> [String] {
            try await store.catchUp()
            return try await store.database.pool.read { try String.fetchAll($0, sql: "SELECT place FROM op_ref") }
        }
        #expect(try await places(b) == [place])
        try await a.queue.commit { try $0.execute(sql: "DELETE FROM op_ref") }
        #expect(try await places(b).isEmpty)
        // One lane is in flight at one node, another one elsewhere.
        _ = try #require(try await a.lease(id: "0", now: time.now))
        #expect(try await b.lease(id: "0", now: time.now) == nil)
        _ = try #require(try await b.lease(id: "1", now: time.now))
        await #expect(throws: DataStoreError.duplicateKey(id: "0")) { _ = try await b.append(write("2", clientKey: long(2))) }
        await a.close()
        await b.close()
    }

    @Test func oneLaneIsInFlightAtOneNode() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        _ = try await a.append(write("1"))
        _ = try await a.append(write("2"))
        _ = try await a.append(write("3", lane: "other"))
        _ = try #require(try await a.lease(id: "1", now: time.now))
        #expect(try await b.lease(id: "1", now: time.now) == nil)
        #expect(try await b.lease(id: "2", now: time.now) == nil)
        #expect(b.isSentElsewhere(1) && !a.isSentElsewhere(1))
        _ = try #require(try await b.lease(id: "3", now: time.now))
        // The database itself refuses a second node in the lane, and the lane to another while it is in use.
        for statement in [
            "INSERT INTO rockpool.claim SELECT 2, upstream, lane, 'other', 1 FROM rockpool.claim WHERE seq = 1",
            "UPDATE rockpool.lane SET node = 'other' WHERE lane = (SELECT lane FROM rockpool.claim WHERE seq = 1)",
        ] {
            #expect(throws: (any Error).self) { try server.sql(statement) }
        }
        // It is free once nothing of it is in flight, and its row is used again.
        try await deliver("1", at: a)
        try await b.catchUp()
        _ = try #require(try await b.lease(id: "2", now: time.now))
        try server.sql("DO $$ BEGIN ASSERT (SELECT count(*) FROM rockpool.lane) = 2; END $$")
        await a.close()
        await b.close()
    }

    @Test func aKeyOfAClientNamesOneWriteInTheFleet() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        _ = try await a.append(write("1", clientKey: "mine", principal: "me"))
        await #expect(throws: DataStoreError.self) { try await b.append(write("2", clientKey: "mine", principal: "me")) }
        #expect(try await open(b) == ["1"])
        await a.close()
        await b.close()
    }

    @Test func aFencedNodeRecordsNothingAndItsWriteIsUncertain() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        _ = try await a.append(write("1"))
        let claimed = try #require(try await a.lease(id: "1", now: time.now)).sequence
        #expect(a.leaseEnd(of: [claimed]) != nil && b.leaseEnd(of: [claimed]) == nil)
        try server.sql("UPDATE rockpool.node SET fenced = true WHERE name = 'a'")
        b.heed(.expired)
        try await until { try await b.operation(id: "1")?.state == .uncertain }
        #expect(try await b.operation(id: "1")?.reason == .crashed)
        _ = try await b.transition(id: "1", to: .pending, reason: nil, from: [.uncertain], now: time.now)
        _ = try #require(try await b.lease(id: "1", now: time.now))
        // What the fenced node learns of its own attempt changes nothing.
        try await until { a.fleet?.absence == nil && a.maySend }
        try await a.catchUp()
        // It has a lease again, but not the one of its claim: nothing of the attempt may begin.
        #expect(a.leaseEnd(of: [claimed]) == nil && b.leaseEnd(of: [claimed]) != nil)
        await #expect(throws: DataStoreError.self) { try await deliver("1", at: a) }
        #expect(try await open(a) == ["1"])
        try await deliver("1", at: b)
        #expect(try await open(a) == [])
        await a.close()
        await b.close()
    }

    @Test func whileTheDatabaseIsAwayWritesAreHeldAndHandedOverInOrder() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        _ = try await a.append(write("1"))
        try server.stop()
        try await until { a.fleet?.absence != nil && b.fleet?.absence != nil }
        for id in ["2", "3"] {
            let taken = try await a.append(write(id, body: .inline(bytes(3000, seed: 7))))
            #expect(a.holder(of: taken) == "a")
        }
        await #expect(throws: DataStoreError.self) { try await a.lease(id: "2", now: time.now) }
        // Those who announce events go by the numbers of the log: what is held has none of the fleet yet.
        #expect(try await a.journal(after: 0, limit: 10).count == 1)
        #expect(try await a.journalPosition().last == 1)
        try server.start()
        try await until { (try? await open(b)) == ["1", "2", "3"] }
        #expect(try await open(a) == ["1", "2", "3"])
        #expect(a.fleet?.held == 0)
        #expect(try await a.journal(after: 1, limit: 10).map(\.number) == [2, 3])
        let operation = try #require(try await b.operation(id: "3"))
        #expect(a.holder(of: operation) == nil)
        #expect(operation.body == .inline(bytes(3000, seed: 7)))
        #expect(try await b.append(write("4")).sequence > operation.sequence)
        await a.close()
        await b.close()
    }

    @Test func thousandsOfHeldWritesAreHandedOverInPortionsBetweenWhichOthersHaveTheirTurn() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        try server.stop()
        try await until { a.fleet?.absence != nil && b.fleet?.absence != nil }
        let ids = (0..<1500).map { "held-\($0)" }
        for id in ids { _ = try await a.append(write(id, body: .inline(bytes(500)), lane: id)) }
        try server.start()
        try await until { b.fleet?.absence == nil && b.maySend }
        var (longest, seen, count) = (Duration.zero, Set<Int>(), 0)
        let begin = ContinuousClock.now
        while seen.max() ?? 0 < ids.count {
            count += 1
            let begun = ContinuousClock.now
            let taken = try await b.append(write("b-\(count)", lane: "b"))
            longest = max(longest, .now - begun)
            #expect(b.holder(of: taken) == nil)
            seen.insert(try await b.openOperations().count { $0.id.hasPrefix("held-") })
        }
        // On a slow machine one portion alone takes long: no wait is longer than three of them.
        let portions = ids.count / HeldOperations.portion.writes
        #expect(longest < max(.seconds(2), (.now - begin) * 3 / portions))
        #expect(!seen.subtracting([0, ids.count]).isEmpty, "\(seen.sorted())")
        #expect(try await open(b).filter { $0.hasPrefix("held-") } == ids)
        #expect(try await open(a) == open(b))
        #expect(a.fleet?.held == 0)
        await a.close()
        await b.close()
    }

    @Test func aFirstNodeThatHoldsMoreThanAPortionBringsAllInOrder() async throws {
        try server.stop()
        let a = try DataStore.open(
            directory: "\(scratch.path)/a", settings: storage(), outbox: server.settings("a"), clock: { [time] in time.now }, logger: quiet)
        let ids = (1...600).map { "\($0)" }
        for id in ids { _ = try await a.append(write(id)) }
        try server.start()
        try await until { (try? await open(a)) == ids && a.fleet?.held == 0 }
        try FileManager.default.copyItem(atPath: "\(scratch.path)/a/install-key", toPath: "\(scratch.path)/key")
        let b = try await node("b")
        #expect(try await open(b) == ids)
        #expect(try await b.openOperations().map(\.sequence) == ids.compactMap { Int64($0) })
        await a.close()
        await b.close()
    }

    @Test func withRefuseNothingIsTakenWhileTheDatabaseIsAway() async throws {
        let a = try await node("a", .refuse)
        try server.stop()
        try await until { a.fleet?.absence != nil }
        await #expect(throws: DataStoreError.self) { try await a.append(write("1")) }
        #expect(try await a.openOperations().isEmpty)
        await a.close()
    }

    @Test func aNodeBringsTheOutboxThatItHad() async throws {
        let single = try openData("\(scratch.path)/a", time)
        _ = try await single.append(write("old"))
        await single.close()
        let a = try await node("a")
        let b = try await node("b")
        try await until { (try? await open(b)) == ["old"] }
        await b.close()
        // A second node with an outbox of its own adds it to the fleet's.
        let other = try openData("\(scratch.path)/c", time)
        _ = try await other.append(write("mine"))
        await other.close()
        let c = try await node("c")
        try await until { (try? await open(a)) == ["old", "mine"] }
        #expect(try await open(c) == ["old", "mine"])
        await a.close()
        await c.close()
    }

    @Test func aNodeThatLeavesHasEveryWriteAndMayComeBack() async throws {
        let a = try await node("a")
        _ = try await a.append(write("1"))
        try server.stop()
        try await until { a.fleet?.absence != nil }
        _ = try await a.append(write("2"))
        await a.close()
        let alone = try openData("\(scratch.path)/a", time)
        let third = try await alone.append(write("3"))
        #expect(try await alone.openOperations().map(\.id) == ["1", "2", "3"])
        #expect(third.sequence < 10)
        await alone.close()
        try server.start()
        let again = try await node("a")
        try await until { (try? await open(again)) == ["1", "2", "3"] }
        let b = try await node("b")
        #expect(try await open(b) == ["1", "2", "3"])
        await again.close()
        await b.close()
    }

    @Test(arguments: [false, true]) func whatANodeHasSentAloneIsNotSentAgainWhenItComesBack(crashes: Bool) async throws {
        let path = "\(scratch.path)/a"
        let a = try await node("a")
        for id in ["1", "2"] { _ = try await a.append(write(id)) }
        await a.close()
        let alone = try openData(path, time)
        _ = try #require(try await alone.lease(id: "1", now: time.now))
        try await deliver("1", at: alone)
        await alone.close()
        var before: String?
        if crashes {
            try server.stop()
            let away = try DataStore.open(
                directory: path, settings: storage(), outbox: server.settings("a"), clock: { [time] in time.now }, logger: quiet)
            await away.close()
            before = try scratch.copy(path, to: "before")
            try server.start()
        }
        let again = try await node("a")
        #expect(try await open(again) == ["2"])
        await again.close()
        if let before {
            // As after a crash before the commit of its own database.
            try FileManager.default.removeItem(atPath: path)
            try FileManager.default.moveItem(atPath: before, toPath: path)
            let third = try await node("a")
            #expect(try await open(third) == ["2"])
            await third.close()
        }
        let b = try await node("b")
        #expect(try await open(b) == ["2"])
        #expect(try await b.operation(id: "1")?.state == .delivered)
        await b.close()
    }

    @Test func aNodeDoesNotComeBackToAFleetThatWentOn() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        _ = try await a.append(write("1"))
        try await b.catchUp()
        await a.close()
        let alone = try openData("\(scratch.path)/a", time)
        await alone.close()
        let early = try DataStore.open(
            directory: "\(scratch.path)/a", settings: storage(), outbox: server.settings("a"), clock: { [time] in time.now }, logger: quiet)
        try await until { early.fleet?.absence?.contains("other nodes share this outbox: b") == true }
        await early.close()
        _ = try await b.append(write("2"))
        let late = try DataStore.open(
            directory: "\(scratch.path)/a", settings: storage(), outbox: server.settings("a"), clock: { [time] in time.now }, logger: quiet)
        try await until { late.fleet?.absence?.contains("since this node left it") == true }
        #expect(!late.maySend)
        #expect(try await open(b) == ["1", "2"])
        await late.close()
        await b.close()
    }

    @Test func aNodeThatStartsAgainFindsWhatItMissed() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        _ = try await a.append(write("1"))
        #expect(try await open(b) == ["1"])
        await b.close()
        _ = try await a.append(write("2"))
        _ = try await a.transition(id: "1", to: .cancelled, reason: .discarded, from: [.pending], now: time.now)
        let again = try await node("b")
        #expect(try await open(again) == ["2"])
        #expect(try await again.operation(id: "1")?.state == .cancelled)
        await a.close()
        await again.close()
    }

    @Test func aNodeWithAnotherSecretStaysOut() async throws {
        let a = try await node("a")
        let b = try DataStore.open(
            directory: "\(scratch.path)/b", settings: storage(), outbox: server.settings("b"), clock: { [time] in time.now }, logger: quiet)
        try await until { b.fleet?.absence?.contains("another secret") == true }
        await a.close()
        await b.close()
    }

    @Test func theNodesAreListed() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        #expect(try await a.fleetNodes().map(\.name) == ["a", "b"])
        #expect(try await b.fleetNodes().map(\.state) == [.live, .live])
        await b.close()
        #expect(try await a.fleetNodes().map(\.state) == [.live, .gone])
        await a.close()
    }
}
