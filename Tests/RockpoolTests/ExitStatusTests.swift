// Exit statuses of every kind of failure, and the parsing of the commands (docs/reference/cli.md#exit-statuses).
import ArgumentParser
import Foundation
import RockpoolCore
import RockpoolNetwork
import Testing

@testable import rockpool

@Suite struct ExitStatusTests {
    @Test(
        arguments: [
            (
                AdminFailure.notRunning(socket: "/s/admin.sock"), 69,
                "rockpool: no server is running (no process listens on /s/admin.sock); start it with: rockpool serve"
            ),
            (.timedOut, 75, "rockpool: the server did not respond in time"),
            (.refused(status: 503, title: "Busy", detail: nil), 75, "rockpool: Busy"),
            (.refused(status: 429, title: nil, detail: nil), 75, "rockpool: the server answered 429"),
            (.refused(status: 409, title: "Conflict", detail: "it is in flight"), 1, "rockpool: Conflict: it is in flight"),
            (.broken("no"), 1, "rockpool: the server cannot be called: no"),
            (.stopped("a.tar cannot be written: No space left on device"), 1, "rockpool: a.tar cannot be written: No space left on device"),
        ] as [(AdminFailure, Int32, String)])
    func `A failed call ends with its status and one line`(failure: AdminFailure, status: Int32, line: String) throws {
        let ending = try #require(Ending(failure))
        #expect(ending.status.rawValue == status)
        #expect(ending.lines == [line])
    }

    @Test func `A bad configuration ends with 78 and a line for each problem`() throws {
        let problems = [Problem(place: .file("f", line: 2), message: "a"), Problem(place: .flag("--x"), message: "b")]
        let ending = try #require(Ending(ConfigurationError(problems: problems)))
        #expect(ending.status.rawValue == 78)
        #expect(ending.lines == ["f:2: a", "--x: b"])
    }

    @Test func `An authority that cannot be used is a bad configuration`() throws {
        let directory = "/tmp/rpt-\(UInt32.random(in: .min ... .max))"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try FileManager.default.createDirectory(atPath: directory + "/ca", withIntermediateDirectories: true)
        try "no key".write(toFile: directory + "/ca/ca.key", atomically: true, encoding: .utf8)
        chmod(directory + "/ca/ca.key", 0o600)
        let problem = try #require(throws: (any Error).self) { try AuthorityFiles(stateDirectory: directory).load() }
        let ending = try #require(Ending(problem))
        #expect(ending.status.rawValue == 78 && ending.lines.count == 1 && ending.lines.first?.contains("ca.key") == true)
    }

    @Test func `A command's own failure ends as it says`() throws {
        let ending = try #require(Ending(CommandFailure(.busy, "the store is locked by 17")))
        #expect(ending.status.rawValue == 75)
        #expect(ending.lines == ["rockpool: the store is locked by 17"])
    }

    @Test(arguments: [
        ["statos"], ["status", "--format", "xml"], ["network", "on"], ["network", "--upstream", "a"], ["outbox", "retry"],
        ["outbox", "retry", "1", "--lane", "a"], ["outbox", "show"], ["storage-cleanup", "--older-than", "week"],
        ["config", "check", "a", "b"],
    ])
    func `Bad usage ends with 64`(arguments: [String]) async {
        let error = await #expect(throws: (any Error).self) { _ = try await Rockpool.asyncParseAsRoot(arguments) }
        #expect(error.map { Rockpool.exitCode(for: $0).rawValue } == 64)
        #expect(error.flatMap { Ending($0) } == nil)
    }

    @Test(arguments: [["--help"], ["--version"], ["outbox", "--help"], ["--generate-completion-script", "bash"]])
    func `Help, version and completions end with 0`(arguments: [String]) async {
        do {
            var command = try await Rockpool.asyncParseAsRoot(arguments)
            try command.run()
        } catch {
            #expect(Rockpool.exitCode(for: error).rawValue == 0)
        }
    }

    @Test func `Arguments reach the command`() async throws {
        let cleanup = try await #require(
            Rockpool.asyncParseAsRoot([
                "storage-cleanup", "--dry-run", "--older-than", "7d", "--category", "assets", "--config", "c", "--format", "json",
            ])
                as? StorageCleanupCommand)
        #expect(cleanup.request == CleanupRequest(dryRun: true, category: "assets", olderThan: .days(7)))
        #expect(cleanup.options.common.config == "c")
        #expect(cleanup.options.format == .json)
        let network = try await #require(
            Rockpool.asyncParseAsRoot(["network", "offline", "--upstream", "notes"]) as? NetworkCommand)
        #expect(network.mode == .offline)
        #expect(network.upstream == "notes")
        try await #expect(Rockpool.asyncParseAsRoot(["outbox", "--format", "json"]) is OutboxCommand.List)
        try await #expect(Rockpool.asyncParseAsRoot(["config", "show", "f.yaml", "--format", "table"]) is ConfigCommand.Show)
    }
}
