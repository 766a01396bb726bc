// Two gateways on a real PostgreSQL: what one takes, both see and send once; a cut line; commits that PostgreSQL does not warrant
// (docs/fleet.md). The scenarios are Tests/fleet/run, of which `make fleet-faults` runs all.
import Foundation
import Glibc
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(5)), .serialized) struct FleetTests {
    private static let checkout =
        URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path
    private static let program = checkout + "/Tests/fleet/run"
    private static let hasPostgreSQL = FileManager.default.fileExists(atPath: "/usr/lib/postgresql")

    @Test(arguments: ["S0", "S3", "S8"]) func holds(_ scenario: String) async throws {
        let run = try await Command.run(
            "/usr/bin/env", ["python3", Self.program, scenario, "--binary", Binary.path], within: .seconds(120))
        #expect(run.status == 0, "\(run.output)\(run.errors)")
    }

    @Test func aSingleNodeSaysThatThereIsNoFleet() async throws {
        try await World.with { world in
            let shown = try await world.server.command("fleet", "nodes")
            #expect(shown.status == 0 && shown.output.contains("no fleet: outbox.store is sqlite"), "\(shown.output)\(shown.errors)")
        }
    }

    /// The commands of the guide, in order, as an ordinary user: PostgreSQL does not run as root.
    @Test(.enabled(if: hasPostgreSQL, "postgresql is not installed")) func theGuideSetsUpTwoGateways() async throws {
        let guide = try String(contentsOfFile: Self.checkout + "/docs/guide/fleet.md", encoding: .utf8)
        let lines = guide.split(separator: "\n", omittingEmptySubsequences: false)
        let commands = lines.filter { $0.hasPrefix("    ") }.map { $0.dropFirst(4) }
        // The user of PostgreSQL may not read the checkout.
        let trial = "/tmp/fleet-checkout-\(getpid())"
        let example = "/docs/guide/example-api.py"
        try FileManager.default.createDirectory(atPath: trial + "/docs/guide", withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: trial) }
        try FileManager.default.copyItem(atPath: Self.checkout + example, toPath: trial + example)
        try FileManager.default.copyItem(atPath: Binary.path, toPath: trial + "/rockpool")
        let end = """
            trap 'kill $(jobs -p); pg_ctl -D db1 -m immediate stop; pg_ctl -D db2 -m immediate stop; cat shop-*.log db2.log; \
                rm -rf /tmp/fleet-trial' EXIT
            """
        let script = "set -e\nPATH=\(trial):$PATH\n\(end)\n" + commands.joined(separator: "\n")
        let user = getuid() == 0 ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] : []
        let run = try await Command.run(
            "/usr/bin/env", user + ["bash", "-c", script], environment: ["HOME": "/tmp"], directory: trial, within: .seconds(120))
        #expect(run.status == 0, "\(run.output)\(run.errors)")
        let said = run.output.split(separator: "\n")
        #expect(said.contains("202") && said.contains { $0.hasSuffix("200") }, "\(run.output)\(run.errors)")
        #expect(said.contains { $0.contains("written at shop-1") }, "\(run.output)\(run.errors)")
        #expect(said.count { $0.contains("shop-") && $0.contains("live") } == 2, "\(run.output)\(run.errors)")
        #expect(said.contains { $0.contains("are lost with the database's host") }, "\(run.output)\(run.errors)")
    }
}
