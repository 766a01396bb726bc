// A running server's signals, and the commands around it (docs/reference/cli.md#signals).
import Foundation
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct RunningTests {
    @Test func portZeroIsAllowedAndTheRealPortIsSaid() async throws {
        let server = try ServerProcess.prepare(ServerSettings())
        let child = try await ChildProcess(
            Binary.path, ["serve", "--config", server.configurationFile, "--proxy-listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
        try await eventually("a line or the end") { child.output.contains("\n") || !child.isRunning }
        let words = child.output.split(whereSeparator: \.isWhitespace)
        #expect(words.count == 4 && words.starts(with: ["rockpool", "ready"]), "\(child.output)\(child.errors)")
        #expect(words.dropFirst(2).allSatisfy { $0.contains("=127.0.0.1:") && !$0.hasSuffix(":0") })
        child.signal(SIGTERM)
        try await #expect(child.ending() == .exit(0))
    }

    @Test(arguments: [SIGTERM, SIGINT]) func exchangesUnderWayAreFinished(_ number: Int32) async throws {
        let api = try await NotesServer.start()
        let server = try await ServerProcess.start(ServerSettings(upstream: api.port))
        async let slow = Curl.send("GET", "http://\(server.gateway)/v1/slow?ms=500")
        try await eventually("the request upstream") { !api.log().isEmpty }
        server.signal(number)
        try await #expect(slow.status == 200)
        try await #expect(server.stop() == .exit(0))
        await api.stop()
    }

    @Test func hangUpReloadsOrKeeps() async throws {
        try await World.with { world in
            await world.goOffline()
            try await #expect(world.send("POST", "/v1/notes", body: "{}").status == 202)
            let good = ServerSettings(
                upstream: world.api.port, World.upstream.merging(["routes": [["match": "POST /v1/notes", "queue": "never"]]]))
            try world.server.configure(good)
            world.server.signal(SIGHUP)
            try await eventually("the new route") { try await world.send("POST", "/v1/notes", body: "{}").status == 503 }
            try Files.write(Array("proxy:\n  lsten: x\n".utf8), to: world.server.configurationFile)
            world.server.signal(SIGHUP)
            try await eventually("the reason on stderr") {
                world.server.errors.contains("\(world.server.configurationFile):2") && world.server.errors.contains("listen")
            }
            try await #expect(world.send("POST", "/v1/notes", body: "{}").status == 503)
            try await #expect(world.server.get("/v1/network").json?["upstreams"]?.array?.count == 1)
        }
    }

    @Test(arguments: [
        ["status"], ["stats"], ["network"], ["network", "offline"], ["outbox", "ls"], ["outbox", "show", "x"], ["outbox", "retry", "x"],
        ["outbox", "discard", "x"], ["outbox", "flush"],
    ]) func commandsNeedAServer(_ arguments: [String]) async throws {
        let server = try ServerProcess.prepare(ServerSettings())
        let run = try await Command.rockpool(arguments + ["--config", server.configurationFile])
        #expect(run.status == 69 && run.output.isEmpty && run.errors.split(separator: "\n").count == 1, "\(run.status) \(run.errors)")
    }

    @Test func readingCommandsSpeakJSON() async throws {
        try await World.with { world in
            await world.goOffline()
            let id = try await world.queued("POST", "/v1/notes", body: "{}")
            for (arguments, path) in [
                (["status"], "/v1/status"), (["network"], "/v1/network"), (["outbox", "ls"], "/v1/operations"),
                (["outbox", "show", id], "/v1/operations/\(id)"),
            ] {
                let run = try await Command.rockpool(arguments + ["--format", "json", "--config", world.server.configurationFile])
                let document = try JSONValue.parse(Array(run.output.utf8))
                let answer = try #require(try await world.server.get(path).json)
                #expect(run.status == 0 && document.object?.names.sorted() == answer.object?.names.sorted(), "\(path)")
            }
            let table = try await world.server.command("outbox", "ls")
            #expect(table.status == 0 && table.output.contains(id) && !table.output.contains("\u{1B}"))
            try await #expect(world.server.command("outbox", "show", "none").status == 1)
            try await #expect(world.server.command("outbox", "flush").status == 0)
        }
    }

    @Test func whatNeedsNoServer() async throws {
        let version = try await Command.rockpool(["--version"])
        #expect(version.status == 0 && version.output.first?.isNumber == true)
        for shell in ["bash", "zsh", "fish"] {
            let script = try await Command.rockpool(["--generate-completion-script", shell])
            #expect(script.status == 0 && script.output.contains("storage-cleanup"))
        }
        let server = try ServerProcess.prepare(ServerSettings(upstream: 4000))
        try await #expect(server.command("config", "check").status == 0)
        let shown = try await server.command("config", "show")
        #expect(shown.status == 0 && shown.output.contains("origin: http://127.0.0.1:4000  # \(server.configurationFile):1"))
        let schema = try await Command.rockpool(["config", "schema"])
        try #expect(schema.status == 0 && JSONValue.parse(Array(schema.output.utf8))["properties"]?["upstreams"] != nil)
        for arguments in [["nonsense"], ["network", "sometimes"], ["outbox", "retry"], ["serve", "--nonsense"]] {
            try await #expect(Command.rockpool(arguments).status == 64, "\(arguments)")
        }
        let help = try await Command.rockpool(["--help"])
        #expect(help.status == 0 && ["serve", "demo", "status", "outbox"].allSatisfy { help.output.contains($0) })
    }
}
