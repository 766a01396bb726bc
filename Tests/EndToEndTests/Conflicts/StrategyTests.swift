// Issue 5: each strategy for each kind of conflict in each order, after an outage and online (docs/outbox.md#strategies,
// docs/guide/conflicts.md).
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

@Suite(.serialized) struct StrategyTests {
    /// A clock that a test sets forward and back, so that two writes are more than a second apart without waiting.
    private final class SetClock: Sendable {
        private let seconds = Mutex<Int64>(-120)
        var reading: @Sendable () -> Timestamp {
            { [self] in NotesServer.systemClock() + .seconds(seconds.withLock { $0 }) }
        }
        func set(_ ahead: Int64) { seconds.withLock { $0 = ahead } }
    }

    @Test(arguments: Resource.Conflict.allCases) func doesWhatItSays(_ strategy: Resource.Conflict) async throws {
        let rows = Meeting.all(strategy)
        let clock = SetClock()
        let api = try await NotesServer.start(seed: rows.map { _ in Meeting.base }, clock: clock.reading)
        let device = try await Device.start(api: api.port, resource: ["conflict": .string(strategy.rawValue)])
        let origin = try await Wire.open("127.0.0.1:\(api.port)")

        var (seen, promised): ([Int: Wire.Answer], [Int: String]) = ([:], [:])
        for row in rows where row.deeds != .createCreate { seen[row.number] = try await device.gateway.send("GET", row.path) }
        clock.set(-60)
        for row in rows where row.way != .offlineBefore { try await theirs(row, origin) }
        try await device.network("offline")
        for row in rows where !row.way.isOnline { promised[row.number] = try await mine(row, seen[row.number], device) }
        clock.set(60)
        for row in rows where row.way == .offlineBefore { try await theirs(row, origin) }
        clock.set(0)
        try await device.network("auto")
        for row in rows where row.way.isOnline { promised[row.number] = try await mine(row, seen[row.number], device) }
        try await device.settle()

        for row in rows {
            let operation = try #require(promised[row.number])
            expect(row, api)
            try await expect(row, operation, device)
            try await expectRecord(row, operation, device)
        }
        let copies = rows.compactMap(\.copy)
        #expect(api.notes.count { copies.contains(.object($0.members)) } == copies.count)
        await device.close()
        try await #expect(device.server.stop() == .exit(0))
        await api.stop()
    }

    private func theirs(_ row: Meeting, _ origin: Wire) async throws {
        let write = row.theirs
        let answer = try await origin.send(write.method, row.path, write.body, fields: write.fields)
        #expect((200...204).contains(answer.status), "\(row.testDescription): \(answer.text)")
    }

    private func mine(_ row: Meeting, _ seen: Wire.Answer?, _ device: Device) async throws -> String {
        let write = row.mine(seen?.json)
        var fields = write.fields + ["Prefer: respond-async"]
        if row.way == .onStaleTag, let tag = seen?.head["etag"] { fields.append("If-Match: \(tag)") }
        return try await device.queue(write.method, row.path, write.body, fields: fields)
    }

    /// Checks the note at the upstream.
    private func expect(_ row: Meeting, _ api: NotesServer) {
        expectSame(api.note(id: row.id).map { .object($0.members) }, row.standing, row.testDescription)
    }

    /// Checks the state of the operation, and the note as read by its device.
    private func expect(_ row: Meeting, _ id: String, _ device: Device) async throws {
        let operation = try #require(try await device.admin.send("GET", "/v1/operations/\(id)").json)
        #expect(operation["state"]?.string == row.state, "\(row.testDescription): \(operation["lastError"] ?? .null)")
        #expect(operation["reason"]?.string == row.reason, "\(row.testDescription)")
        let answer = try await device.gateway.send("GET", row.path)
        #expect(answer.status == (row.shown == nil ? 404 : 200), "\(row.testDescription): \(answer.text)")
        if let shown = row.shown { expectSame(answer.json?.ownMembers, shown, row.testDescription) }
        // A write that waits for a person is named before one that only waits.
        let pending = row.showsMine ? (row.shown == nil ? "pending-delete" : "pending") : nil
        let waiting = ["dead", "conflicted", "uncertain"].contains(row.state) ? row.state : pending
        #expect(answer.head["rockpool-state"] == waiting, "\(row.testDescription)")
    }

    private func expectRecord(_ row: Meeting, _ operation: String, _ device: Device) async throws {
        let record = try #require(try await device.conflict(of: operation), "\(row.testDescription)")
        #expect(record["kind"]?.string == row.kind.rawValue, "\(row.testDescription)")
        #expect(record["strategy"]?.string == row.strategy.rawValue && record["detection"] == "strong", "\(row.testDescription)")
        #expect(record["resolution"]?.string == row.resolution, "\(row.testDescription)")
        #expect(record["decidedBy"]?.string == row.resolution.map { _ in "strategy" }, "\(row.testDescription)")
        #expect((record["closedAt"]?.string == nil) == (row.ending == .asked), "\(row.testDescription)")
        expectSame(record["base"]?.ownMembers, row.sides.base, "\(row.testDescription): base")
        expectSame(record["mine"]?.ownMembers, row.sides.mine, "\(row.testDescription): mine")
        expectSame(record["theirs"]?.ownMembers, row.sides.theirs, "\(row.testDescription): theirs")
        expectSame(record["merged"]?.ownMembers, row.result, "\(row.testDescription): merged")
        let fields = record["fields"]?.array ?? []
        let clashes = fields.filter { $0["conflicting"] == true }.compactMap { $0["pointer"]?.string }
        #expect(Set(clashes) == row.clashes, "\(row.testDescription)")
        if row.deeds == .disjointEdits {
            let places = Set(fields.compactMap { $0["pointer"]?.string })
            #expect(places.isSuperset(of: ["/title", "/status"]), "\(row.testDescription): \(places)")
        }
    }
}
