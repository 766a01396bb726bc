// The OpenAPI description against the running server: a client made from it, and random requests of schemathesis.
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(6))) struct DescriptionTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..").standardizedFileURL.path
    private static let description = root + "/Sources/AdminPages/openapi.yaml"

    /// Runs `body` with stored responses and writes that wait.
    private func with(_ body: (World) async throws -> Void) async throws {
        try await World.with { world in
            for path in ["/v1/notes", "/v1/notes/1", "/v1/absent"] { _ = try await world.send("GET", path) }
            _ = try await world.server.command("network", "offline")
            for title in ["one", "two", "three"] { _ = try await world.queued("POST", "/v1/notes", body: #"{"title":"\#(title)"}"#) }
            try await body(world)
        }
    }

    @Test(.enabled(if: Python.with("yaml") != nil))
    func aClientMadeFromTheDescriptionCanUseTheServer() async throws {
        let python = try #require(Python.with("yaml"))
        try await with { world in
            _ = try await world.server.command("ca", "init")
            let run = try await Command.run(
                "/usr/bin/env",
                [
                    python, "-B", Self.root + "/Tests/programs/openapi_client.py", Self.description, "http://\(world.server.admin)",
                    try world.server.token,
                ], within: .seconds(120))
            #expect(run.status == 0, "\(run.output.suffix(4000)) \(run.errors.suffix(3000))")
        }
    }

    /// Every operation but those whose requests or answers schemathesis cannot make: the endless stream, and uploads of files.
    @Test(.enabled(if: Python.with("schemathesis") != nil))
    func schemathesisFindsNoFault() async throws {
        let python = try #require(Python.with("schemathesis"))
        try await with { world in
            let run = try await Command.run(
                "/usr/bin/env",
                [
                    python, "-B", "-c", "from schemathesis.cli import schemathesis; schemathesis()", "run", Self.description, "--url",
                    "http://\(world.server.admin)", "-H", "Authorization: Bearer \(try world.server.token)", "--exclude-path", "/v1/events",
                    "--exclude-path", "/v1/cache/import", "--exclude-path", "/v1/operations/import", "--phases",
                    "examples,coverage,fuzzing", "--max-examples", "10", "--seed", "1",
                    "--request-timeout", "30", "--continue-on-failure", "--no-color",
                ],
                environment: [
                    "SCHEMATHESIS_HOOKS": "schemathesis_hooks", "PYTHONPATH": Self.root + "/Tests/programs",
                    "HOME": world.server.scratch.path,
                    "PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8",
                ],
                directory: world.server.scratch.path, within: .seconds(240))
            #expect(run.status == 0, "\(run.output.suffix(6000)) \(run.errors.suffix(2000))")
            #expect(run.output.contains("Operations:"), "\(run.output.prefix(600))")
        }
    }
}
