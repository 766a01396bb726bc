// Two gateways on a real PostgreSQL: what one takes, both see and send once; a cut line; commits that PostgreSQL does not warrant
// (docs/fleet.md); and the commands of docs/guide/fleet.md. The scenarios are Tests/fleet/run, of which `make fleet-faults` runs all.
import Foundation
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(5)), .serialized) struct FleetTests {
    private static let checkout =
        URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path
    private static let program = checkout + "/Tests/fleet/run"

    @Test(arguments: ["S0", "S2a", "S2b", "S3", "S7u", "S8", "S15", "S17", "SR", "guide", "page"])
    func holds(_ scenario: String) async throws {
        let run = try await Command.run(
            "/usr/bin/env", ["python3", Self.program, scenario, "--binary", Binary.path], within: .seconds(120))
        #expect(run.status == 0, "\(run.output)\(run.errors)")
    }

    @Test func thePlantedMistakesFitTheCode() async throws {
        let run = try await Command.run(
            "/usr/bin/env", ["python3", Self.checkout + "/Tests/fleet/mistakes/run", "--check"], within: .seconds(30))
        #expect(run.status == 0, "\(run.output)\(run.errors)")
    }

    @Test func aSingleNodeSaysThatThereIsNoFleet() async throws {
        try await World.with { world in
            let shown = try await world.server.command("fleet", "nodes")
            #expect(shown.status == 0 && shown.output.contains("no fleet: outbox.store is sqlite"), "\(shown.output)\(shown.errors)")
            let status = try await world.server.command("fleet", "status", "--check")
            #expect(status.status == 0 && status.output.contains("no fleet: outbox.store is sqlite"), "\(status.output)\(status.errors)")
            let outbox = try await world.server.command("fleet", "outbox")
            #expect(outbox.status == 0 && outbox.output.contains("no operations"), "\(outbox.output)\(outbox.errors)")
            let conflicts = try await world.server.command("fleet", "conflicts", "--format", "json")
            #expect(conflicts.status == 0 && conflicts.output.contains("\"items\""), "\(conflicts.output)\(conflicts.errors)")
            let moved = try await world.server.command("outbox", "migrate", "--to", "postgresql://rockpool@127.0.0.1/rockpool")
            #expect(moved.status == 75 && moved.errors.contains("uses this state directory; stop it"), "\(moved.output)\(moved.errors)")
        }
    }
}
