// SIGKILL between any two durable steps: P1–P4 and P14 hold with every kind of upstream (docs/outbox.md#fault-points).
import Foundation
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct FailPointTests {
    @Test(arguments: KillPoint.names) func nothingIsLostOrDoubled(_ name: String) async throws {
        try await withThrowingTaskGroup { group in
            for kill in KillPoint.all where kill.name == name {
                for kind in UpstreamKind.allCases { group.addTask { try await expectSurvival(kill, kind) } }
            }
            try await group.waitForAll()
        }
    }

    private func expectSurvival(_ kill: KillPoint, _ kind: UpstreamKind) async throws {
        var run = try await FaultRun(kill, kind)
        let place = "\(kill.testDescription), \(kind.rawValue)"
        do {
            try await #expect(run.live() == .signal(SIGKILL), "\(place): \(run.world.server.errors)")
            try await expectSurvival(&run, place)
        } catch {
            Issue.record("\(place): \(error)\n\(run.world.server.errors)")
        }
        await run.world.api.stop()
    }

    private func expectSurvival(_ run: inout FaultRun, _ place: String) async throws {
        let server = run.world.server
        let acknowledged = run.promised.count
        try await run.revive()
        let taken = try await expectConserved(run, place)
        if run.kill.trigger == .accepting {
            try await run.write(run.script)
            // The same key gives the same operation, although its client did not receive the first response.
            try await #expect(server.operations().count == run.script.count, "\(place)")
        } else {
            #expect(Set(run.script.map(\.key)).isSubset(of: run.promised.keys), "\(place)")
        }
        try await run.bringBack()
        let cleaned = try await server.command("storage-cleanup", "--format", "json")
        try #expect(JSONValue.parse(Array(cleaned.output.utf8))["errors"]?.array?.isEmpty == true, "\(place): \(cleaned.errors)")
        try await run.settle()
        try await expectEffects(run, place)
        if run.kill.trigger == .cleaning { try await expectPurged(run, place) }
        if run.kill.trigger == .merging { try await expectMerged(run, place) }
        try await #expect(server.stop() == .exit(0), "\(place)")
        try run.store.audit()
        try note(run, acknowledged: acknowledged, taken: taken)
    }

    /// Checks P1: each acknowledged operation is stored once; an unacknowledged one is absent, or stored because it was committed.
    /// - Returns: the number of stored operations without an acknowledgement.
    private func expectConserved(_ run: FaultRun, _ place: String) async throws -> Int {
        let ids = try await run.world.server.operations().compactMap { $0["id"]?.string }
        #expect(Set(ids).count == ids.count, "\(place)")
        let lost = run.promised.filter { $0.key.hasPrefix("w-") && !ids.contains($0.value) }
        #expect(lost.isEmpty, "\(place): lost \(lost)")
        let unpromised = Set(ids).subtracting(run.promised.values)
        #expect(unpromised.count == (run.kill.name == "K5" ? 1 : 0), "\(place)")
        return unpromised.count
    }

    /// Checks P2, P3 and P4: one effect of each write, in order, with complete bodies.
    private func expectEffects(_ run: FaultRun, _ place: String) async throws {
        let api = run.world.api
        let effects = api.log().filter(\.hasEffect).sorted { ($0.effectOrder ?? 0) < ($1.effectOrder ?? 0) }
        for write in run.script {
            let operation = try await run.world.server.get("/v1/operations/\(run.promised[write.key] ?? "")").json
            let count = api.effects(forKey: operation?["idempotencyKey"]?.string ?? write.key)
            switch operation?["state"]?.string {
            case "delivered" where !run.kind.honoursKeys && write.method == "PUT":
                #expect((1...2).contains(count), "\(place): \(write.key)")
            case "delivered", "cancelled": #expect(count == 1, "\(place): \(write.key) has \(count) effects")
            case "superseded": #expect(count == 0 && run.kill.name == "K14", "\(place): \(write.key)")
            default: Issue.record("\(place): \(write.key) is \(operation?["state"]?.string ?? "nowhere")")
            }
        }
        if run.kind.honoursKeys { #expect(run.doubted.isEmpty, "\(place)") }
        let whole = Set((run.script + Write.old).map { Array($0.body.utf8) })
        #expect(effects.allSatisfy { whole.contains($0.body) }, "\(place): an effect has a body that no client wrote")
        for path in ["/v1/notes/1", "/v1/notes/2"] {
            // One whose effect was unknown has left the order, and a person has sent it again.
            let places = effects.filter { $0.target == path }.compactMap { seen in
                run.script.firstIndex { Array($0.body.utf8) == seen.body && !run.doubted.contains(run.promised[$0.key] ?? "") }
            }
            #expect(places == places.sorted(), "\(place): the effects on \(path) are out of order")
        }
    }

    /// Checks that each conflict was decided once, and that the changes of both sides are kept.
    private func expectMerged(_ run: FaultRun, _ place: String) async throws {
        for (id, title) in [("1", "w-patch3"), ("2", "w-other")] {
            let note = run.world.api.note(id: id)?.members
            #expect(note?["title"]?.string == title && note?["status"] == "theirs", "\(place): note \(id)")
        }
        let records = try await run.world.server.get("/v1/conflicts?state=all").json?["items"]?.array ?? []
        let met = run.script.filter { $0.method == "PATCH" }.compactMap { run.promised[$0.key] }
        #expect(records.compactMap { $0["operation"]?.string }.sorted() == met.sorted(), "\(place): \(records.count) records")
        #expect(records.allSatisfy { $0["resolution"] == "merged" && $0["closedAt"]?.string != nil }, "\(place)")
    }

    /// Checks that operations that ended long ago are purged, and that failed ones are written to a file.
    private func expectPurged(_ run: FaultRun, _ place: String) async throws {
        let server = run.world.server
        let ids = try await server.operations().compactMap { $0["id"]?.string }
        #expect(Set(ids).isDisjoint(with: Write.old.compactMap { run.promised[$0.key] }), "\(place)")
        let files = Files.names(in: server.stateDirectory, startingWith: "purged-")
        let lines = try files.map { try Files.text(of: server.stateDirectory + "/" + $0) }.joined()
        #expect(lines.contains(run.promised["old-refused"] ?? "none"), "\(place): a failed operation was purged without a record")
    }

    /// Appends a row for the table in Benchmarks/RESULTS.md to the file named by `ROCKPOOL_FAULTS`.
    private func note(_ run: FaultRun, acknowledged: Int, taken: Int) throws {
        guard let path = ProcessInfo.processInfo.environment["ROCKPOOL_FAULTS"] else { return }
        let requests = run.world.requests
        let bodies = run.script.map { Array($0.body.utf8) }
        let counts = bodies.map { body in requests.count { $0.hasEffect && $0.body == body } }
        let sent = requests.count { bodies.contains($0.body) }
        let row = [
            run.kill.testDescription, run.kind.rawValue, "\(acknowledged)", "\(taken)", "\(sent)", "\(counts.count { $0 == 1 })",
            "\(counts.count { $0 > 1 })", "\(run.doubted.count)",
        ]
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try file.seekToEnd()
        try file.write(contentsOf: Data("| \(row.joined(separator: " | ")) |\n".utf8))
        try file.close()
    }
}
