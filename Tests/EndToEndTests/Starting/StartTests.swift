// Failed starts: one clear line, the right exit status, no file changed (issue 2, *bad input*; docs/reference/cli.md#serve).
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct StartTests {
    /// Returns the result of a start that must fail.
    private func failure(_ server: ServerProcess, launcher: [String] = []) async throws -> Command {
        do {
            try await server.start(launcher: launcher)
        } catch let failure as ServerProcess.DidNotStart {
            #expect(failure.command.output.isEmpty)
            return failure.command
        }
        try await server.stop()
        throw NeverCame(description: "the server started")
    }

    /// Expects one line on stderr that contains all of `words`.
    private func expectOneLine(_ command: Command, _ status: Int32, _ words: String..., at location: SourceLocation = #_sourceLocation) {
        #expect(command.status == status, "\(command.errors)", sourceLocation: location)
        #expect(command.errors.split(separator: "\n").count == 1, "\(command.errors)", sourceLocation: location)
        for word in words { #expect(command.errors.contains(word), "\(command.errors)", sourceLocation: location) }
    }

    /// The log is on a full disk, or closed: what cannot be written is lost, and the server goes on.
    @Test(arguments: ["2>/dev/full", "2>&-"]) func aLogThatCannotBeWrittenEndsNothing(_ log: String) async throws {
        let server = try ServerProcess.prepare(ServerSettings(upstream: FreePort.next()))
        try await server.start(launcher: ["/bin/sh", "-c", "exec \"$@\" \(log)", "sh"])
        // The absence of the upstream is a line of the log.
        for _ in 0..<3 { try await #expect(Curl.send("GET", "http://\(server.gateway)/a").status == 504) }
        try await #expect(Curl.send("POST", "http://\(server.gateway)/a", body: "x").status == 202)
        #expect(server.isRunning)
        try await #expect(server.stop() == .exit(0))
    }

    @Test(arguments: ["proxy", "admin", "gateway"]) func aPortInUse(_ listener: String) async throws {
        let other = try await RawServer.start { _ in }
        let address = "127.0.0.1:\(other.port)"
        var settings = ServerSettings(upstream: FreePort.next())
        switch listener {
        case "proxy": settings.proxy = ["listen": .string(address)]
        case "admin": settings.admin = ["listen": .string(address)]
        default: settings.upstream = settings.upstream?.merging(["gateway": .string(address)])
        }
        expectOneLine(try await failure(try ServerProcess.prepare(settings)), 1, address)
        await other.stop()
    }

    @Test func aSecondServerOnTheSameStore() async throws {
        let first = try await ServerProcess.start(ServerSettings())
        let second = try await Command.rockpool([
            "serve", "--config", first.configurationFile, "--admin-listen", "127.0.0.1:\(FreePort.next())",
        ])
        expectOneLine(second, 75, "\(first.pid)")
        try await #expect(first.get("/healthz").status == 204)
        try await #expect(first.stop() == .exit(0))
        try await first.start()
        try await #expect(first.stop() == .exit(0))
    }

    @Test(arguments: [
        ("storage:\n  cache_limt: 1 GB\n", 2, "cache_limit"), ("proxy:\n  listen: nowhere\n", 2, "listen"),
        ("storage:\n  data_limit: 1 MB\n", 2, "8 MB"), ("upstreams:\n  - name: a\n    origin: ftp://a\n", 3, "origin"),
        ("cleanup:\n  interval: soon\n", 2, "soon"), ("proxy: [\n", 2, ""),
    ]) func aBadConfiguration(_ text: String, _ line: Int, _ word: String) async throws {
        let scratch = try Scratch()
        let file = try scratch.write(text, to: "bad.yaml")
        for arguments in [["serve", "--config", file, "--state-dir", scratch.path + "/s"], ["config", "check", file]] {
            let run = try await Command.rockpool(arguments)
            #expect(run.status == 78 && run.errors.contains("\(file):\(line)") && run.errors.contains(word), "\(run.errors)")
        }
        #expect(Files.mode(of: scratch.path + "/s") == nil)
    }

    @Test func aMissingConfiguration() async throws {
        let run = try await Command.rockpool(["serve", "--config", "/nonexistent/rockpool.yaml"])
        expectOneLine(run, 78, "/nonexistent/rockpool.yaml")
    }

    /// A file in place of a directory: unusable for every user, root too.
    @Test(arguments: ["cache", "state"]) func anUnusableDirectory(_ name: String) async throws {
        let server = try ServerProcess.prepare(ServerSettings())
        try server.scratch.write("", to: name)
        expectOneLine(try await failure(server), 1, server.scratch.path + "/" + name)
    }

    @Test func aStateDirectoryOthersCanRead() async throws {
        let server = try await ServerProcess.start(ServerSettings())
        #expect(Files.mode(of: server.stateDirectory) == 0o700 && Files.mode(of: server.cacheDirectory) == 0o700)
        for name in ["admin-token", "admin.sock"] { #expect(Files.mode(of: server.stateDirectory + "/" + name) == 0o600) }
        try await #expect(server.stop() == .exit(0))
        try Files.setMode(0o755, of: server.stateDirectory)
        expectOneLine(try await failure(server), 1, server.stateDirectory)
        try Files.setMode(0o700, of: server.stateDirectory)
        try await server.start()
        try await #expect(server.stop() == .exit(0))
    }

    @Test(arguments: [0o777, 0o770, 0o702]) func aCacheDirectoryOthersCanWrite(_ mode: Int) async throws {
        let server = try await ServerProcess.start(ServerSettings())
        try await #expect(server.stop() == .exit(0))
        try Files.setMode(mode, of: server.cacheDirectory)
        expectOneLine(try await failure(server), 1, server.cacheDirectory, "chmod go-w")
        try Files.setMode(0o755, of: server.cacheDirectory)
        try await server.start()
        try await #expect(server.stop() == .exit(0))
    }

    @Test(arguments: ["", "\n", "secret", String(repeating: "x", count: 31)]) func aTokenThatCanBeGuessed(_ token: String) async throws {
        let server = try await ServerProcess.start(ServerSettings())
        try await #expect(server.stop() == .exit(0))
        let path = server.stateDirectory + "/admin-token"
        try Files.write(Array(token.utf8), to: path)
        try Files.setMode(0o600, of: path)
        expectOneLine(try await failure(server), 1, path, "32 characters")
        try Files.write(Array(String(repeating: "x", count: 32).utf8), to: path)
        try Files.setMode(0o600, of: path)
        try await server.start()
        try await #expect(server.change("POST", "/v1/operations/flush").status == 200)
        try await #expect(server.stop() == .exit(0))
    }

    @Test func tooFewDescriptors() async throws {
        let server = try ServerProcess.prepare(ServerSettings())
        expectOneLine(try await failure(server, launcher: ["/bin/sh", "-c", "ulimit -n 90; exec \"$@\"", "sh"]), 1, "90", "ulimit -n")
    }

    /// Overwrites the first pages of the database and deletes its log.
    private func damage(_ path: String) throws -> [UInt8] {
        var bytes = try Files.bytes(of: path)
        for place in bytes.indices where place < 16_384 { bytes[place] = UInt8(truncatingIfNeeded: place &* 7) }
        try Files.write(bytes, to: path)
        return bytes
    }

    @Test func aCorruptCacheIsSetAside() async throws {
        try await World.with { world in
            _ = try await world.send("GET", "/v1/assets/100")
            try await world.server.stop()
            let path = world.server.cacheDirectory + "/cache.sqlite"
            let damaged = try damage(path)
            try await world.server.start()
            let aside = Files.names(in: world.server.cacheDirectory, startingWith: "cache.sqlite.corrupt")
            #expect(try aside.contains { try Files.bytes(of: world.server.cacheDirectory + "/" + $0) == damaged })
            #expect(world.server.errors.contains("cache.sqlite"), "\(world.server.errors)")
            try await #expect(world.send("GET", "/v1/assets/100")["cache-status"]?.contains("uri-miss") == true)
            try await #expect(world.send("GET", "/v1/assets/100")["cache-status"]?.hasPrefix("rockpool; hit") == true)
        }
    }

    @Test func corruptDataStopsTheStart() async throws {
        let server = try await ServerProcess.start(ServerSettings())
        try await #expect(server.stop() == .exit(0))
        let path = server.stateDirectory + "/data.sqlite"
        let damaged = try damage(path)
        expectOneLine(try await failure(server), 1, path, "doctor --recover")
        #expect(try Files.bytes(of: path) == damaged)
        try await #expect(server.command("storage-cleanup").status == 1)
        #expect(try Files.bytes(of: path) == damaged)
    }
}
