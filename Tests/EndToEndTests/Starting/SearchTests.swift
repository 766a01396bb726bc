// Commands find the server wherever it runs, and name one of another state directory (docs/reference/cli.md#calling).
import Foundation
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct SearchTests {
    /// An environment in which no server of this machine's user is found.
    private func alone(_ scratch: Scratch) -> [String: String] {
        ["HOME": scratch.path, "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "XDG_DATA_HOME": "", "XDG_RUNTIME_DIR": scratch.path]
    }

    @Test func theServerIsFoundByEveryName() async throws {
        let (server, scratch) = (try await ServerProcess.start(ServerSettings()), try Scratch())
        let environment = alone(scratch)
        let socket = server.stateDirectory + "/admin.sock"
        for (flags, variables) in [
            (["--socket", socket], [:]), (["--state-dir", server.stateDirectory], [:]), ([], ["ROCKPOOL_SOCKET": socket]),
            ([], ["ROCKPOOL_STATE_DIR": server.stateDirectory]), ([], ["ROCKPOOL_STORAGE_STATE_DIR": server.stateDirectory]),
        ] as [([String], [String: String])] {
            let status = try await Command.rockpool(
                ["status", "--format", "json"] + flags, environment: environment.merging(variables) { $1 }, directory: scratch.path)
            let document = try JSONValue.parse(Array(status.output.utf8))
            #expect(status.status == 0 && document["stateDir"]?.string == server.stateDirectory, "\(flags) \(variables): \(status.errors)")
            #expect(document["configFile"]?.string == server.configurationFile && document["version"]?.string == "1.0.0")
            #expect(document["dashboard"]?.string == "http://\(server.admin)/" && document["proxy"]?.string == server.proxy)
            #expect(status.errors.isEmpty, "\(status.errors)")
        }
        try FileManager.default.createDirectory(atPath: scratch.path + "/rockpool", withIntermediateDirectories: false)
        try FileManager.default.createSymbolicLink(atPath: scratch.path + "/rockpool/admin.sock", withDestinationPath: socket)
        let usual = try await Command.rockpool(["status"], environment: environment, directory: scratch.path)
        #expect(usual.status == 0 && usual.output.contains(server.stateDirectory), "\(usual.errors)")
    }

    @Test func aServerOfAnotherDirectoryIsNamed() async throws {
        let (server, scratch) = (try await ServerProcess.start(ServerSettings()), try Scratch())
        let environment = alone(scratch).merging(["ROCKPOOL_ADMIN_LISTEN": server.admin]) { $1 }
        let status = try await Command.rockpool(["status"], environment: environment, directory: scratch.path)
        #expect(status.status == 69 && status.errors.contains("--state-dir \(server.stateDirectory)"), "\(status.errors)")
        let doctor = try await Command.rockpool(["doctor"], environment: environment, directory: scratch.path)
        #expect(doctor.output.contains(server.stateDirectory) && !doctor.output.contains("ss -ltnp"), "\(doctor.output)")
    }

    @Test func theSocketMayLieElsewhereAndBelongToAGroup() async throws {
        let scratch = try Scratch()
        var settings = ServerSettings()
        settings.admin = ["socket": .string(scratch.path + "/run/admin.sock"), "socket_access": "group"]
        let server = try await ServerProcess.start(settings)
        #expect(Files.mode(of: scratch.path + "/run/admin.sock") == 0o660)
        try await #expect(server.command("status").status == 0)
        #expect(!FileManager.default.fileExists(atPath: server.stateDirectory + "/admin.sock"))
    }

    @Test func commandsUseTheConfigurationOfTheRunningServer() async throws {
        let (server, scratch) = (try await ServerProcess.start(ServerSettings(upstream: FreePort.next())), try Scratch())
        let options = ["--socket", server.stateDirectory + "/admin.sock"]
        func run(_ words: String...) async throws -> Command {
            try await Command.rockpool(words + options, environment: alone(scratch), directory: scratch.path)
        }
        let shown = try await run("config", "show")
        #expect(shown.output.hasPrefix("# \(server.configurationFile): of the running server") && shown.output.contains("name: notes"))
        let variables = try await run("env", "--shell", "sh")
        #expect(variables.output.contains("http://\(server.proxy)"), "\(variables.output)\(variables.errors)")
        let doctor = try await run("doctor")
        #expect(doctor.output.contains("1 upstream, \(server.configurationFile)"), "\(doctor.output)")
        // Over the port it needs the token.
        try await #expect(server.get("/v1/configuration").status == 401)
    }

    @Test func theOutboxOfAStoppedServerIsListed() async throws {
        let server = try await ServerProcess.start(ServerSettings(upstream: FreePort.next()))
        _ = try await Curl.send("POST", "http://\(server.gateway)/v1/notes", body: "{}")
        try await server.stop()
        let list = try await server.command("outbox", "ls", "--format", "json")
        let items = try JSONValue.parse(Array(list.output.utf8))["items"]?.array ?? []
        #expect(list.status == 0 && items.count == 1 && items.first?["method"]?.string == "POST", "\(list.errors)")
    }
}
