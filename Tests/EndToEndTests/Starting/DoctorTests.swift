// `rockpool doctor` with a healthy setup, an offline upstream, and an invalid configuration (docs/reference/cli.md#doctor).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct DoctorTests {
    /// Returns the exit status, and the result of each check by name.
    private func examine(_ server: ServerProcess) async throws -> (status: Int32, results: [String: String]) {
        let command = try await server.command("doctor", "--format", "json")
        let checks = try #require(try JSONValue.parse(Array(command.output.utf8))["checks"]?.array, "\(command.errors)")
        let pairs = checks.compactMap { check in check["check"]?.string.flatMap { name in check["result"]?.string.map { (name, $0) } } }
        return (command.status, Dictionary(pairs) { first, _ in first })
    }

    @Test func theDoctorKnowsAHealthySetUpFromOneWhoseUpstreamIsAway() async throws {
        try await World.with { world in
            let healthy = try await examine(world.server)
            #expect(healthy.status == 0 && healthy.results["server"] == "ok" && !healthy.results.values.contains("fail"), "\(healthy)")
            await world.goOffline()
            let away = try await examine(world.server)
            #expect(away.status == 0, "an offline upstream is not an error: \(away)")
            #expect(away.results.contains { $0.value == "warn" && healthy.results[$0.key] == "ok" }, "\(away)")
        }
    }

    @Test func whatIsWrongIsSaidWithItsLineAndFails() async throws {
        let server = try ServerProcess.prepare(ServerSettings(upstream: 4000, ["polcy": "standard"]))
        let command = try await server.command("doctor")
        #expect(command.status == 1 && command.output.contains("rockpool.yaml:1: unknown key \"polcy\""), "\(command.output)")
    }
}
