// One node's trouble is its own: the lock of the fleet, what is done before it, and what waits for it (docs/fleet.md#transactions).
import Foundation
import GRDB
import RockpoolCore
import RockpoolTesting
import Testing

@testable import RockpoolStore

@Suite(.enabled(if: PostgreSQLServer.programs != nil, "postgresql is not installed"), .serialized, .timeLimit(.minutes(5)))
struct FleetLockTests: FleetCase {
    let scratch: Scratch
    let time = ManualTime()
    let server: PostgreSQLServer

    init() throws {
        scratch = try Scratch()
        server = try PostgreSQLServer()
    }

    private func check(_ condition: String) throws {
        try server.sql("DO $$ BEGIN ASSERT (\(condition)); END $$")
    }

    @Test func aWriterThatDoesNothingLosesTheLock() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        _ = try await a.append(write("1"))
        #expect(try await open(b) == ["1"])
        let stopped = Task {
            try await a.queue.commit { db in
                try db.execute(sql: "UPDATE op SET priority = 7 WHERE id = '1'")
                Thread.sleep(forTimeInterval: 6)
            }
        }
        try await Task.sleep(for: .milliseconds(300))
        // It is not held: that would be for want of the database.
        let begun = ContinuousClock.now
        let written = try await b.append(write("2"))
        #expect(written.sequence < HeldOperations.first)
        #expect(ContinuousClock.now - begun < .seconds(4))
        await #expect(throws: DataStoreError.self) { try await stopped.value }
        try await until { (try? await open(a)) == ["1", "2"] }
        #expect(try await a.operation(id: "1")?.priority == 0)
        await a.close()
        await b.close()
    }

    @Test func bodiesAreThereBeforeTheLockAndWhole() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        let body = try await blob(2_500_000, in: a)
        // While another transaction has the lock, the body is sent all the same.
        let holder = try SharedServer(node: "test", url: server.settings("a").url ?? "").connect(to: nil)
        try holder.run("BEGIN; \(SharedSchema.lock)", within: .seconds(5))
        async let written = a.append(write("1", body: body))
        try await until { (try? check("SELECT count(*) = 3 FROM rockpool.blob")) != nil }
        try check("SELECT count(*) = 0 FROM rockpool.item WHERE tbl = 'op'")
        try holder.run("COMMIT", within: .seconds(5))
        _ = try await written
        #expect(try await open(b) == ["1"])
        #expect(try await b.operation(id: "1")?.body.length == 2_500_000)
        // A piece that is missing is sent again with the next write that has the body.
        try server.sql("DELETE FROM rockpool.blob WHERE i = 1")
        _ = try await a.append(write("2", body: try await blob(2_500_000, in: a)))
        try check("SELECT count(*) = 3 FROM rockpool.blob")
        await a.close()
        await b.close()
    }

    @Test func whatIsLeftIsRemovedInPortions() async throws {
        let a = try await node("a")
        _ = try await a.append(write("1", body: try await blob(1_500_000, in: a)))
        try server.sql(
            """
            INSERT INTO rockpool.item (tbl, key, part, n) SELECT 'gone', int4send(g), 0, -g FROM generate_series(1, 2500) AS g;
            INSERT INTO rockpool.word SELECT -g, g, now() - interval '2 hours' FROM generate_series(1, 1500) AS g;
            INSERT INTO rockpool.blob SELECT decode(repeat('ab', 32), 'hex'), g, 'orphan'::bytea FROM generate_series(0, 3) AS g;
            """)
        let connection = try SharedServer(node: "test", url: server.settings("a").url ?? "").connect(to: nil)
        let membership = try #require(a.fleetReplica?.membership)
        var turns = 1
        while try membership.prune(on: connection) { turns += 1 }
        #expect(turns == 3)
        try check("SELECT count(*) = 0 FROM rockpool.item WHERE tbl = 'gone'")
        try check("SELECT count(*) = 0 FROM rockpool.word WHERE n < 0")
        // The body of the write stays, and its history.
        try check("SELECT count(*) = 2 AND min(length(sha)) = 32 FROM rockpool.blob")
        try check("SELECT count(*) > 0 FROM rockpool.word")
        await a.close()
    }

    @Test func aDatabaseThatHangsCostsAReadLittle() async throws {
        let a = try await node("a")
        try await a.catchUp()
        // The writer waits for the server, which does not answer it.
        let holder = try SharedServer(node: "test", url: server.settings("a").url ?? "").connect(to: nil)
        try holder.run("BEGIN; LOCK TABLE rockpool.node, rockpool.item IN ACCESS EXCLUSIVE MODE", within: .seconds(5))
        let begun = ContinuousClock.now
        await a.catchUp(ifOlderThan: .zero, within: .milliseconds(250))
        #expect(ContinuousClock.now - begun < .seconds(2))
        try holder.run("COMMIT", within: .seconds(5))
        await a.close()
    }

    @Test func theAddressIsReadForEachConnection() async throws {
        let file = "\(scratch.path)/url"
        func write(_ url: String) {
            _ = FileManager.default.createFile(atPath: file, contents: Data(url.utf8), attributes: [.posixPermissions: 0o600])
        }
        var settings = server.settings("a")
        let url = settings.url ?? ""
        (settings.url, settings.urlFile) = (nil, file)
        write(url.replacing(":\(server.port)/", with: ":1/"))
        let a = try DataStore.open(
            directory: "\(scratch.path)/a", settings: storage(), outbox: settings, clock: { [time] in time.now }, logger: quiet)
        try await until { a.fleet?.absence?.contains("cannot be reached") == true }
        write(url)
        try await until { a.maySend }
        try await a.queue.commit { _ in }
        #expect(a.fleet?.transactions ?? 0 > 0 && a.fleet?.lockWait ?? .zero > .zero)
        // It is looked at from time to time.
        try await until { a.fleet?.behind == 0 }
        await a.close()
    }

    @Test func whatAnotherNodeHasAcceptedIsLearnedWhenItIsNamed() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        let local = LocalID.make(now: time.now, random: (1, 2))
        var create = write("1")
        (create.collection, create.entityID, create.localID) = ("/v1/notes", local.text, local)
        _ = try await a.append(create)
        #expect(b.fleetPosition <= a.fleetPosition)
        await b.learn([local])
        #expect(b.localIDs.knows(local))
        _ = try await a.append(write("2", lane: "other"))
        await b.learn([], floor: a.fleetPosition)
        #expect(b.fleetPosition >= a.fleetPosition)
        #expect(try await b.operation(id: "2") != nil)
        await a.close()
        await b.close()
    }
}
