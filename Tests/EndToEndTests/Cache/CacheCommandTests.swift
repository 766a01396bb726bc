// `rockpool cache` with the real binary, while a real server is running and while it is stopped (docs/reference/cli.md#cache).
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct CacheCommandTests {
    private func url(_ world: World, _ path: String) -> String { "http://127.0.0.1:\(world.api.port)\(path)" }

    /// Runs one of the cache commands and returns its output as JSON.
    private func json(_ world: World, _ arguments: String...) async throws -> JSONValue {
        let command = try await world.server.command(["cache"] + arguments + ["--format", "json"])
        #expect(command.status == 0, "\(command.errors)")
        return try JSONValue.parse(Array(command.output.utf8))
    }

    @Test func lsShowAndExplain() async throws {
        try await World.with { world in
            let empty = try await world.server.command(["cache", "ls"])
            #expect(empty.status == 0 && empty.output == "nothing stored\n")
            _ = try await world.send("GET", "/v1/assets/1000")
            _ = try await world.send("GET", "/v1/notes/1", fields: ["Authorization: Bearer s3cret"])
            let items = try #require(try await json(world, "ls")["items"]?.array)
            #expect(items.count == 2 && items.contains { $0["url"]?.string == url(world, "/v1/assets/1000") && $0["identity"] == "shared" })
            try await #expect(json(world, "ls", "--prefix", url(world, "/v1/notes"))["items"]?.array?.count == 1)
            try await #expect(json(world, "ls", "--category", "assets", "--limit", "1")["items"]?.array?.count == 1)
            try await #expect(json(world, "ls", "--match", "notes", "--status", "2xx")["items"]?.array?.count == 1)
            for none in [["--pinned"], ["--age", "1h"], ["--status", "404"]] {
                let listed = try await world.server.command(["cache", "ls"] + none)
                #expect(listed.status == 0 && listed.output == "nothing stored\n", "\(none) \(listed.errors)")
            }
            _ = try await world.send("GET", "/v1/assets/1000")
            let read = try await json(world, "ls", "--sort", "hits")["items"]?.array ?? []
            #expect(read.first?["url"]?.string == url(world, "/v1/assets/1000") && read.first?["hits"] == 1, "\(read)")
            try await #expect(world.server.command(["cache", "ls", "--sort", "name"]).status == 64)

            let shown = try await world.server.command(["cache", "show", url(world, "/v1/notes/1")])
            #expect(shown.status == 0 && shown.output.contains("private") && shown.output.contains("ETag"))
            #expect(!shown.output.contains("s3cret"))
            let none = try await world.server.command(["cache", "show", url(world, "/v1/none")])
            #expect(none.status == 1 && none.errors.contains("nothing is stored for") && none.output.isEmpty)

            let explained = try await json(world, "explain", url(world, "/v1/assets/1000"))
            #expect(explained["decision"]?.string == "fresh" && explained["arithmetic"]?["remaining"] != nil)
            #expect(missing(["key", "vary", "arithmetic", "decision", "reason"], in: explained).isEmpty)
            let text = try await world.server.command(
                ["cache", "explain", url(world, "/v1/notes/1"), "--header", "Authorization: Bearer s3cret"])
            #expect(text.status == 0 && text.output.contains(/variants +1/) && !text.output.contains("s3cret"), "\(text.output)")
        }
    }

    @Test func aPurgeAfterItsDryRun() async throws {
        try await World.with { world in
            for path in ["/v1/assets/10", "/v1/assets/20", "/v1/notes/1"] { _ = try await world.send("GET", path) }
            let dry = try await json(world, "purge", "--prefix", url(world, "/v1/assets/"), "--dry-run")
            #expect(dry["dryRun"] == true && dry["entries"] == 2)
            try await #expect(json(world, "ls")["items"]?.array?.count == 3)
            let real = try await json(world, "purge", "--prefix", url(world, "/v1/assets/"))
            #expect(real["dryRun"] == false && real["entries"] == 2 && real["bytes"] == dry["bytes"])
            try await #expect(json(world, "purge", url(world, "/v1/notes/1"), url(world, "/v1/none"))["entries"] == 1)
            try await #expect(json(world, "ls")["items"]?.array?.isEmpty == true)
            for (arguments, status) in [
                ([], Int32(64)), (["--group", "a", "--category", "b"], 1), (["nonsense"], 64), (["--category", "nonsense"], 1),
            ] {
                try await #expect(world.server.command(["cache", "purge"] + arguments).status == status)
            }
        }
    }

    @Test func whatWasPrefetchedIsThereOffline() async throws {
        try await World.with { world in
            let file = try world.server.scratch.write("# notes\n\(url(world, "/v1/notes/2"))\n", to: "urls.txt")
            let fetched = try await world.server.command(["cache", "prefetch", url(world, "/v1/notes/1"), "--file", file, "--pin"])
            #expect(fetched.status == 0 && fetched.errors.isEmpty && fetched.output.contains("pinned"), "\(fetched.errors)")
            #expect(world.arrivals("GET", "/v1/notes/1") == 1 && world.arrivals("GET", "/v1/notes/2") == 1)
            await world.goOffline()
            for note in 1...2 { try await #expect(world.send("GET", "/v1/notes/\(note)").status == 200) }
            let failed = try await world.server.command(["cache", "prefetch", url(world, "/v1/notes/3")])
            #expect(failed.status == 1 && failed.output.contains("offline-miss") && failed.errors.contains("1 of 1 are not stored"))
        }
    }

    @Test func whatIsPinnedSurvivesCleanup() async throws {
        try await World.with { world in
            for path in ["/v1/assets/10", "/v1/assets/20"] { _ = try await world.send("GET", path) }
            try await #expect(world.server.command(["cache", "pin", url(world, "/v1/assets/10")]).status == 0)
            try await #expect(world.server.command(["storage-cleanup", "--aggressive"]).status == 0)
            let left = try await json(world, "ls")["items"]?.array
            #expect(left?.map { $0["url"]?.string } == [url(world, "/v1/assets/10")] && left?.first?["pinned"] == true)
            try await #expect(world.server.command(["cache", "unpin", url(world, "/v1/assets/10")]).status == 0)
            try await #expect(world.server.command(["storage-cleanup", "--aggressive"]).status == 0)
            try await #expect(json(world, "ls")["items"]?.array?.isEmpty == true)
            try await #expect(world.server.command(["cache", "pin", url(world, "/v1/assets/10")]).status == 1)
        }
    }

    @Test func pinsStopAtTheirCap() async throws {
        try await World.with(storage: ["cache_limit": "64 MB", "pin_cap": "1%"]) { world in
            for path in ["/v1/assets/400000", "/v1/assets/500000"] { _ = try await world.send("GET", path) }
            try await #expect(world.server.command(["cache", "pin", url(world, "/v1/assets/400000")]).status == 0)
            let refused = try await world.server.command(["cache", "pin", url(world, "/v1/assets/500000")])
            #expect(refused.status == 1 && refused.errors.contains("storage.pin_cap"), "\(refused.errors)")
            expectProblem(
                try await world.server.change("PUT", "/v1/cache/pins?url=\(url(world, "/v1/assets/500000"))"), "conflict", 409)
        }
    }

    @Test(arguments: [true, false]) func outPurgedAndInAgain(isRunning: Bool) async throws {
        try await World.with { world in
            var bodies: [String: [UInt8]] = [:]
            for path in ["/v1/assets/200", "/v1/assets/300000", "/v1/notes/1"] { bodies[path] = try await world.send("GET", path).body }
            let file = world.server.scratch.path + "/out.warc"
            if !isRunning { try await #expect(world.server.stop() == .exit(0)) }
            let out = try await world.server.command(["cache", "export", file])
            #expect(out.status == 0 && out.errors.hasPrefix("exported ") && Files.mode(of: file) == 0o600, "\(out.errors)")
            let again = try await world.server.command(["cache", "export", file])
            #expect(again.status == 1 && again.errors.hasSuffix("out.warc already exists; add --force to replace it\n"), "\(again.errors)")
            try await #expect(world.server.command(["cache", "export", file, "--force"]).status == 0)
            try await #expect(json(world, "purge", "--upstream", "notes")["entries"] == 3)
            let taken = try await json(world, "import", file)
            #expect(taken["imported"]?.integer ?? 0 >= 2 && taken["skippedCount"] == 0)
            if !isRunning { try await world.server.start() }
            await world.goOffline()
            for path in ["/v1/assets/200", "/v1/assets/300000"] {
                let reply = try await world.send("GET", path)
                #expect(reply.status == 200 && reply.body == bodies[path], "\(path)")
            }
            let piped = try await Command.run(
                "/bin/sh",
                [
                    "-c", "\(Binary.path) cache export - --config $0 | \(Binary.path) cache import - --config $0",
                    world.server.configurationFile,
                ])
            #expect(piped.status == 0 && piped.output.contains("already stored"), "\(piped.errors)")
        }
    }

    @Test func whatIsImportedIsAskedAboutOnce() async throws {
        try await World.with { world in
            let path = "/v1/assets/200"
            _ = try await world.send("GET", path)
            let file = world.server.scratch.path + "/out.warc"
            try await #expect(world.server.command(["cache", "export", file]).status == 0)
            _ = try await json(world, "purge", "--upstream", "notes")
            try await #expect(json(world, "import", file)["imported"] == 1)
            for _ in 0..<2 { try await #expect(world.send("GET", path).status == 200) }
            #expect(world.arrivals("GET", path) == 2)
        }
    }

    @Test func aBrokenBundleIsRefusedAndNothingIsLost() async throws {
        try await World.with { world in
            _ = try await world.send("GET", "/v1/assets/200")
            let file = world.server.scratch.path + "/out.warc"
            try await #expect(world.server.command(["cache", "export", file]).status == 0)
            try Files.write(try Files.bytes(of: file).dropLast(3), to: file)
            let refused = try await world.server.command(["cache", "import", file])
            #expect(refused.status == 1 && refused.errors.contains("record 3: the file ends within it"), "\(refused.errors)")
            try Files.write(Array(repeating: 0x2A, count: 30_000_000), to: file)
            let nonsense = try await world.server.command(["cache", "import", file])
            #expect(nonsense.status == 1 && nonsense.errors.contains("record 1: it does not start with WARC/1."), "\(nonsense.errors)")
            try await #expect(world.server.command(["cache", "import", "/nowhere"]).status == 64)
            try await #expect(json(world, "ls")["items"]?.array?.count == 1)
        }
    }

    @Test func withTheServerStopped() async throws {
        try await World.with { world in
            _ = try await world.send("GET", "/v1/assets/200")
            try await #expect(world.server.stop() == .exit(0))
            try await #expect(json(world, "ls")["items"]?.array?.count == 1)
            try await #expect(json(world, "explain", url(world, "/v1/assets/200"))["decision"] == "fresh")
            let prefetch = try await world.server.command(["cache", "prefetch", url(world, "/v1/assets/1")])
            #expect(prefetch.status == 69 && prefetch.errors.contains("start it with: rockpool serve"), "\(prefetch.errors)")
            try await #expect(json(world, "purge", url(world, "/v1/assets/200"))["entries"] == 1)
            #expect(Files.names(in: world.server.stateDirectory, startingWith: "admin.sock").isEmpty)
            try await world.server.start()
            try await #expect(json(world, "ls")["items"]?.array?.isEmpty == true)
        }
    }

    @Test func whereThereNeverWasAServerNothingIsMade() async throws {
        let server = try ServerProcess.prepare(ServerSettings())
        let list = try await server.command(["cache", "ls"])
        #expect(list.status == 69 && list.errors.contains("no server is running"), "\(list.errors)")
        #expect(Files.names(in: server.scratch.path) == ["rockpool.yaml"])
    }
}
