// The way of an outbox into the database of a fleet and back, on a real PostgreSQL (docs/fleet.md#joining-and-leaving). Skipped where it is
// missing.
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@testable import RockpoolStore

@Suite(.enabled(if: PostgreSQLServer.programs != nil, "postgresql is not installed"), .serialized, .timeLimit(.minutes(5)))
struct FleetMigrationTests: FleetCase {
    let scratch: Scratch
    let time = ManualTime()
    let server: PostgreSQLServer

    init() throws {
        scratch = try Scratch()
        server = try PostgreSQLServer()
    }

    private func bring(_ name: String) async throws -> OutboxCensus {
        try await DataStore.bring(
            "\(scratch.path)/\(name)", into: server.settings(name), settings: storage(), clock: { [time] in time.now }, logger: quiet)
    }

    private func takeBack(_ name: String) async throws -> OutboxCensus {
        try await DataStore.takeBack(
            "\(scratch.path)/\(name)", from: server.settings(name), settings: storage(), clock: { [time] in time.now }, logger: quiet)
    }

    /// An outbox with a delivered write, a pending one with a key and a body in a file, and one without.
    private func fill(_ name: String) async throws {
        let single = try openData("\(scratch.path)/\(name)", time)
        _ = try await single.append(write("old"))
        _ = try #require(try await single.lease(id: "old", now: time.now))
        try await deliver("old", at: single)
        _ = try await single.append(
            write("keyed", body: try await blob(2_000_000, in: single), clientKey: "mine", principal: "me"))
        _ = try await single.append(write("last"))
        await single.close()
        try FileManager.default.copyItem(atPath: "\(scratch.path)/\(name)/install-key", toPath: "\(scratch.path)/key")
    }

    @Test func anOutboxGoesThereAndBackAndIsCounted() async throws {
        try await fill("a")
        let brought = try await bring("a")
        #expect(brought.operations == 3 && brought.open == 2 && brought.keys == 1 && brought.bodies == 3 && brought.history > 0)
        // Again: nothing is doubled.
        #expect(try await bring("a") == brought)
        let b = try await node("b")
        #expect(try await open(b) == ["keyed", "last"])
        _ = try await b.append(write("of-b"))
        await b.close()
        let back = try await takeBack("a")
        #expect(back.operations == 4 && back.open == 3 && back.keys == 1)
        #expect(try await takeBack("a") == back)
        try server.sql("DO $$ BEGIN ASSERT NOT EXISTS (SELECT FROM rockpool.item); END $$")
        let single = try openData("\(scratch.path)/a", time)
        #expect(try await single.openOperations().map(\.id) == ["keyed", "last", "of-b"])
        #expect(try await single.operation(id: "keyed")?.body == write("x", body: try await blob(2_000_000, in: single)).body)
        #expect(single.fleet == nil)
        await single.close()
    }

    @Test func whatWasSentAfterTheWayBackIsNotSentAgainByAnybody() async throws {
        try await fill("a")
        _ = try await bring("a")
        let b = try await node("b")
        #expect(try await open(b) == ["keyed", "last"])
        await b.close()
        _ = try await takeBack("a")
        let single = try openData("\(scratch.path)/a", time)
        for id in ["keyed", "last"] {
            _ = try #require(try await single.lease(id: id, now: time.now))
            try await deliver(id, at: single)
        }
        await single.close()
        // A replica of what was there before stays out, also once another outbox is there.
        let stale = try DataStore.open(
            directory: "\(scratch.path)/b", settings: storage(), outbox: server.settings("b"), clock: { [time] in time.now }, logger: quiet)
        try await until { stale.fleet?.absence?.contains("outbox was moved") == true }
        #expect(!stale.maySend)
        let again = try await bring("a")
        #expect(again.operations == 3 && again.open == 0)
        let a = try await node("a")
        #expect(try await open(a).isEmpty)
        #expect(stale.fleet?.absence?.contains("outbox was moved") == true && !stale.maySend)
        await a.close()
        await stale.close()
    }

    @Test func theWayBackIsRefusedWhileAnotherNodeIsThere() async throws {
        try await fill("a")
        _ = try await bring("a")
        let b = try await node("b")
        await #expect { try await takeBack("a") } throws: { "\($0)".contains("other nodes share this outbox: b") }
        await b.close()
        try server.sql("UPDATE rockpool.node SET held = 3 WHERE name = 'b'")
        await #expect { try await takeBack("a") } throws: { "\($0)".contains("b (holds 3 writes)") }
        // Nothing has changed.
        let a = try await node("a")
        #expect(try await open(a) == ["keyed", "last"])
        await #expect(throws: DataStoreError.locked(pid: getpid())) { try await bring("a") }
        await a.close()
    }

    @Test func aCrashBetweenTheTwoDatabasesLeavesNothingBehind() async throws {
        try await fill("a")
        _ = try await bring("a")
        // As after a crash once the shared database was emptied, before this node's own has left it.
        let a = try await node("a")
        try await a.emptyFleet()
        await a.close()
        let again = try DataStore.open(
            directory: "\(scratch.path)/a", settings: storage(), outbox: server.settings("a"), clock: { [time] in time.now }, logger: quiet)
        try await until { again.fleet?.absence?.contains("migrate --to sqlite again") == true }
        // Only a person can bring it back: an acknowledgement would promise too much.
        await #expect(throws: DataStoreError.self) { try await again.append(write("held")) }
        await again.close()
        await #expect { try await bring("a") } throws: { "\($0)".contains("migrate --to sqlite again") }
        #expect(try await takeBack("a").open == 2)
        #expect(try await bring("a").open == 2)
    }

    @Test func aDatabaseThatIsAwayIsSaid() async throws {
        try await fill("a")
        try server.stop()
        await #expect { try await bring("a") } throws: { "\($0)".contains("the fleet's database is away: PostgreSQL cannot be reached") }
        // It is no replica: a command that opens it as it is may change it.
        let asItIs = try DataStore.open(
            directory: "\(scratch.path)/a", settings: storage(), outbox: nil, clock: { [time] in time.now }, logger: quiet)
        #expect(asItIs.replica == nil)
        await asItIs.close()
        let single = try openData("\(scratch.path)/a", time)
        #expect(try await single.openOperations().map(\.id) == ["keyed", "last"])
        await single.close()
    }

    @Test func aStoppedServerThatIsLookedAtStaysInItsFleet() async throws {
        try await fill("a")
        let before = try await node("a")
        _ = try await open(before)
        await before.close()
        let looked = try DataStore.open(
            directory: "\(scratch.path)/a", settings: storage(), outbox: nil, clock: { [time] in time.now }, logger: quiet)
        #expect(try await looked.openOperations().map(\.id) == ["keyed", "last"])
        #expect(!looked.maySend)
        await #expect(throws: DataStoreError.self) { try await looked.append(write("new")) }
        await looked.close()
        let a = try await node("a")
        #expect(try await open(a) == ["keyed", "last"])
        #expect(try await a.fleetNodes().count == 1)
        await a.close()
    }

    @Test func theNodesOfAnOperationAreKnown() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        _ = try await a.append(write("1"))
        _ = try await b.append(write("2"))
        _ = try await b.append(write("3", lane: "other"))
        try await a.catchUp()
        _ = try #require(try await b.lease(id: "1", now: time.now))
        let places = try await a.fleetPlaces(of: a.openOperations())
        #expect(places["1"] == FleetPlace(takenBy: "a", sentBy: "b"))
        #expect(places["2"] == FleetPlace(takenBy: "b", sentBy: "b"))
        #expect(places["3"] == FleetPlace(takenBy: "b", sentBy: nil))
        await a.close()
        await b.close()
    }
}
