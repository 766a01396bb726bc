// Every raw case of Tests/raw-http with the real binary, as forward proxy and as gateway (RFC 9110, 9111, 9112;
// docs/security-model.md#request-gate).
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

struct RawCaseTests {
    private static let directory =
        URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path + "/raw-http"

    /// Runs both files on both listeners in parallel, because most of the time is spent waiting for deadlines.
    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/python3"), "needs python3"))
    func everyCaseHolds() async throws {
        try await withThrowingTaskGroup { group in
            for file in ["cases.json", "own.json"] {
                for door in Door.allCases { group.addTask { try await hold(file, door) } }
            }
            try await group.waitForAll()
        }
    }

    private func hold(_ file: String, _ door: Door) async throws {
        let port = FreePort.next()
        let timeouts: JSONValue = ["head": "3s", "body": "3s", "idle": "4s"]
        let proxy: JSONValue = ["timeouts": timeouts, "connect_ports": [443, .number(JSONNumber(Int64(port)))]]
        let members: JSONValue = ["policy": "standard", "timeouts": ["connect": "2s", "first_byte": "5s", "idle": "5s"]]
        let server = try await ServerProcess.start(ServerSettings(upstream: port, members, proxy: proxy))
        let listener = door == .proxy ? ["--proxy", server.proxy] : ["--gateway", server.gateway]
        let run = try await Command.run(
            "/usr/bin/python3",
            ["\(Self.directory)/run.py", "--origin", "127.0.0.1:\(port)", "--admin", server.admin, "--cases", "\(Self.directory)/\(file)"]
                + ["--slow", "12", "--wait", "2.5"] + listener,
            within: .seconds(420))
        // The runner's output names the failed cases.
        #expect(run.status == 0, "\(file) by \(door)\n\(run.output)\n\(run.errors)")
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }
}
