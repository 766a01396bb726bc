// Every raw case of Tests/raw-http through the real binary, as forward proxy and as gateway (RFC 9110, 9111, 9112; security.md §2).
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct RawCaseTests {
    private static let directory =
        URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path + "/raw-http"

    @Test(
        .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/python3"), "needs python3"),
        arguments: ["cases.json", "own.json"], Door.allCases)
    func everyCaseHolds(_ file: String, _ door: Door) async throws {
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
        // What fails is told by name in the runner's own words.
        #expect(run.status == 0, "\(run.output)\n\(run.errors)")
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }
}
