// One API more or less for a server that runs: by `rockpool add` and `remove`, by the admin API, and by a reload of a changed file
// (docs/reference/cli.md#add, docs/reference/cli.md#remove, docs/reference/configuration.md#reload).
import Foundation
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct AddTests {
    private func gateways(of server: ServerProcess) async throws -> [String: String] {
        struct Clients: Decodable { var gateways: [String: String] }
        return try JSONDecoder().decode(Clients.self, from: Data(await server.get("/v1/clients").body)).gateways
    }

    @Test func aFileInOneLineIsLeftAlone() async throws {
        let (server, api) = (try await ServerProcess.start(ServerSettings()), try await NotesServer.start(seed: [["title": "a"]]))
        let url = "http://127.0.0.1:\(api.port)"
        // The test's file is JSON in one line, which has no place for lines.
        let refused = try await server.command("add", url)
        #expect(refused.status == 1 && refused.errors.contains("in one line"), "\(refused.output)\(refused.errors)")
        _ = try await server.stop()
        await api.stop()
    }

    /// Who may not change the file is told so before anything else, with the command that works.
    @Test func aUserWithoutTheRightIsToldTheCommand() async throws {
        let scratch = try Scratch()
        let file = try scratch.write("log: { access: \"off\" }\n", to: "rockpool.yaml")
        try Files.setMode(0o755, of: scratch.path)
        try Files.setMode(0o644, of: file)
        if getuid() != 0 { try Files.setMode(0o555, of: scratch.path) }
        defer { try? Files.setMode(0o755, of: scratch.path) }
        let user = getuid() == 0 ? ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : []
        let words = ["add", "http://127.0.0.1:9", "--name", "a b", "--config", file]
        let command = user + [Binary.path] + words
        let environment = ["HOME": "/nonexistent", "XDG_RUNTIME_DIR": "", "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": ""]
        let run = try await Command.run(command[0], Array(command.dropFirst()), environment: environment)
        #expect(run.status == 1 && run.output.isEmpty, "\(run.output)\(run.errors)")
        #expect(run.errors.hasSuffix("run: sudo rockpool add http://127.0.0.1:9 --name 'a b' --config \(file)\n"), "\(run.errors)")
    }

    /// An API that is away may be declared, and is no mistake that nobody hears of.
    @Test func anAPIThatDoesNotAnswerIsDeclaredAndSaid() async throws {
        let scratch = try Scratch()
        let text = "storage: { cache_dir: c, state_dir: s }\nupstreams:\n"
        let file = try scratch.write(text, to: "rockpool.yaml")
        let environment = ["HOME": scratch.path, "XDG_RUNTIME_DIR": "", "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "XDG_CACHE_HOME": ""]
        let url = "http://127.0.0.1:\(FreePort.next())"
        let added = try await Command.rockpool(["add", url, "--name", "shop", "--config", file], environment: environment)
        let said = "rockpool: \(url) cannot be reached: nothing answers there; it is declared all the same"
        #expect(added.status == 0 && added.errors == said + ", and taken back by: rockpool remove shop\n", "\(added.errors)")
        #expect(try Files.text(of: file).contains(url))
        let removed = try await Command.rockpool(["remove", "shop", "--config", file], environment: environment)
        #expect(removed.status == 0, "\(removed.output)\(removed.errors)")
        #expect(try Files.text(of: file) == text)
        let mistyped = try await Command.rockpool(["add", "htp" + url.dropFirst(4), "--config", file], environment: environment)
        #expect(mistyped.status == 78 && mistyped.errors.contains("did you mean: \(url)\n"), "\(mistyped.errors)")
    }

    @Test func aFileOfLinesIsChanged() async throws {
        let (scratch, api) = (try Scratch(), try await NotesServer.start(seed: [["title": "a"]]))
        try scratch.write(
            "# mine\nproxy: { listen: \"127.0.0.1:0\" }\nadmin: { listen: \"127.0.0.1:0\" }\nstorage: { min_free: 1 MB, cache_dir: c, state_dir: s }\n",
            to: "rockpool.yaml")
        let environment = ["HOME": scratch.path, "XDG_RUNTIME_DIR": "", "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "XDG_CACHE_HOME": ""]
        let file = scratch.path + "/rockpool.yaml"
        let child = try await ChildProcess(Binary.path, ["serve", "--config", file], environment: environment)
        try await eventually("the ready line") { child.output.contains("rockpool ready") || !child.isRunning }
        let common = ["--config", file]
        let url = "http://127.0.0.1:\(api.port)"
        let looked = try await Command.rockpool(["add", url, "--dry-run"] + common, environment: environment)
        #expect(looked.status == 0 && looked.output.contains("+   - name:"), "\(looked.output)\(looked.errors)")
        #expect(try !Files.text(of: file).contains(url))
        let added = try await Command.rockpool(["add", url, "--name", "notes"] + common, environment: environment)
        #expect(added.status == 0, "\(added.output)\(added.errors)")
        let gateway = try #require(added.output.firstMatch(of: /use (http:\/\/127\.0\.0\.1:[0-9]+) in place of/)?.1, "\(added.output)")
        #expect(try Files.text(of: file).hasPrefix("# mine\n"))
        let read = try await Curl.send("GET", "\(gateway)/v1/notes/1")
        #expect(read.status == 200 && read.text.contains("\"a\""), "\(read)")
        let again = try await Command.rockpool(["add", url] + common, environment: environment)
        #expect(again.status == 0 && again.output.contains("declared already, as notes"), "\(again.output)\(again.errors)")
        // A gateway whose port is taken: nothing changes, and the file is as it was.
        let text = try Files.text(of: file)
        let taken = try await Command.rockpool(
            ["add", "http://localhost:\(api.port)", "--gateway", String(gateway.dropFirst(7))] + common, environment: environment)
        #expect(taken.status != 0 && taken.errors.contains("gateway"), "\(taken.output)\(taken.errors)")
        #expect(try Files.text(of: file) == text)
        try await #expect(Curl.send("GET", "\(gateway)/v1/notes/1").status == 200)
        child.signal(SIGTERM)
        try await #expect(child.ending() == .exit(0))
        await api.stop()
    }

    /// What was added is taken back: the file is as it was, and the gateway is closed. Writes keep it, or wait until it is declared again.
    @Test func anAPIIsTakenBack() async throws {
        let (scratch, api) = (try Scratch(), try await NotesServer.start(seed: [["title": "a"]]))
        let file = try scratch.write(
            "proxy: { listen: \"127.0.0.1:0\" }\nadmin: { listen: \"127.0.0.1:0\" }\nstorage: { min_free: 1 MB, cache_dir: c, state_dir: s }\n",
            to: "rockpool.yaml")
        let before = try Files.text(of: file) + "upstreams:\n"
        let environment = ["HOME": scratch.path, "XDG_RUNTIME_DIR": "", "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "XDG_CACHE_HOME": ""]
        let child = try await ChildProcess(Binary.path, ["serve", "--config", file], environment: environment)
        try await eventually("the ready line") { child.output.contains("rockpool ready") || !child.isRunning }
        func rockpool(_ words: String...) async throws -> Command {
            try await Command.rockpool(words + ["--config", file], environment: environment)
        }
        let url = "http://127.0.0.1:\(api.port)"
        let added = try await rockpool("add", url, "--name", "notes")
        let gateway = try #require(added.output.firstMatch(of: /use (http:\/\/127\.0\.0\.1:[0-9]+) in place of/)?.1, "\(added.errors)")
        let unknown = try await rockpool("remove", "note")
        #expect(unknown.status == 1 && unknown.errors.contains("no upstream \"note\", but notes"), "\(unknown.errors)")
        let looked = try await rockpool("remove", "notes", "--dry-run")
        #expect(looked.status == 0 && looked.output.contains("-   - name: \"notes\""), "\(looked.output)\(looked.errors)")
        try await #expect(rockpool("network", "offline").status == 0)
        let write = try await Curl.send("PUT", "\(gateway)/v1/notes/1", fields: ["Content-Type: application/json"], body: #"{"title":"b"}"#)
        #expect((200..<300).contains(write.status) && write["rockpool-operation"] != nil, "\(write)")
        let text = try Files.text(of: file)
        let refused = try await rockpool("remove", url)
        #expect(refused.status == 1 && refused.errors.contains("1 write to notes is not delivered"), "\(refused.output)\(refused.errors)")
        #expect(try Files.text(of: file) == text)
        let removed = try await rockpool("remove", url, "--yes")
        #expect(removed.status == 0, "\(removed.output)\(removed.errors)")
        #expect(removed.output.contains("1 write to notes stays in the outbox"), "\(removed.output)")
        #expect(try Files.text(of: file) == before)
        try await #expect(Curl.send("GET", "\(gateway)/v1/notes/1").status == 0)
        // Declared again, it gets what waited for it.
        try await #expect(rockpool("add", url, "--name", "notes").status == 0)
        try await #expect(rockpool("network", "auto").status == 0)
        try await eventually("the write is delivered") { api.log().contains { $0.method == .put } }
        child.signal(SIGTERM)
        try await #expect(child.ending() == .exit(0))
        await api.stop()
    }

    /// Of several APIs with one origin, the URL names one by its path, or none.
    @Test func onlyTheAPIThatIsMeantIsTakenBack() async throws {
        let scratch = try Scratch()
        let entries = ["v1", "v2"].map { "  - name: \($0)\n    origin: http://127.0.0.1:9/\($0)\n" }
        let start = "storage: { cache_dir: c, state_dir: s }\nupstreams:\n"
        let file = try scratch.write(start + entries.joined(), to: "rockpool.yaml")
        let unclear = try await Command.rockpool(["remove", "http://127.0.0.1:9", "--config", file])
        #expect(unclear.status == 1 && unclear.errors.contains("but v1, v2"), "\(unclear.output)\(unclear.errors)")
        #expect(try Files.text(of: file) == start + entries.joined())
        let removed = try await Command.rockpool(["remove", "http://127.0.0.1:9/v2/", "--config", file])
        #expect(removed.status == 0, "\(removed.output)\(removed.errors)")
        #expect(try Files.text(of: file) == start + entries[0])
    }

    /// An API is declared already only where it covers the URL: another path of the same origin is another API.
    @Test func anotherPathOfTheOriginIsAnotherAPI() async throws {
        let scratch = try Scratch()
        let url = "http://127.0.0.1:\(FreePort.next())"
        let file = try scratch.write(
            "storage: { cache_dir: c, state_dir: s }\nupstreams:\n  - name: v1\n    origin: \(url)/v1\n", to: "rockpool.yaml")
        let environment = ["HOME": scratch.path, "XDG_RUNTIME_DIR": "", "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "XDG_CACHE_HOME": ""]
        func add(_ words: String...) async throws -> Command {
            try await Command.rockpool(["add"] + words + ["--config", file], environment: environment)
        }
        let known = try await add("\(url)/v1/notes")
        #expect(known.status == 0 && known.output.contains("\(url)/v1 is declared already, as v1"), "\(known.output)\(known.errors)")
        let added = try await add("\(url)/v10/", "--name", "v10")
        #expect(added.status == 0 && added.output.contains("origin: \"\(url)/v10\""), "\(added.output)\(added.errors)")
        let rest = try await add(url, "--name", "rest")
        #expect(rest.status == 0 && rest.output.contains("origin: \"\(url)\""), "\(rest.output)\(rest.errors)")
        let again = try await add("\(url)/v2")
        #expect(again.status == 0 && again.output.contains("\(url) is declared already, as rest"), "\(again.output)\(again.errors)")
    }

    /// A server declares what the key `origin` says, with its path; the same again is known, another API of that name is not possible.
    @Test func theServerDeclaresAnAPIByItsPath() async throws {
        let scratch = try Scratch()
        let file = try scratch.write(
            "proxy: { listen: \"127.0.0.1:0\" }\nadmin: { listen: \"127.0.0.1:0\" }\nstorage: { min_free: 1 MB, cache_dir: c, state_dir: s }\n",
            to: "rockpool.yaml")
        let environment = ["HOME": scratch.path, "XDG_RUNTIME_DIR": "", "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "XDG_CACHE_HOME": ""]
        let child = try await ChildProcess(Binary.path, ["serve", "--config", file], environment: environment)
        try await eventually("the ready line") { child.output.contains("rockpool ready") || !child.isRunning }
        let admin = try #require(child.output.firstMatch(of: /admin=([0-9.:]+)/)?.1, "\(child.output)")
        let token = try Files.text(of: scratch.path + "/s/admin-token").filter { !$0.isNewline }
        func put(_ name: String, _ origin: String) async throws -> Int {
            try await Curl.send(
                "PUT", "http://\(admin)/v1/upstreams/\(name)",
                fields: ["Content-Type: application/json", "Authorization: Bearer \(token)"],
                body: "{\"origin\": \"\(origin)\"}"
            ).status
        }
        try await #expect(put("v1", "http://127.0.0.1:9/v1") == 201)
        try await #expect(put("v2", "http://127.0.0.1:9/v2/") == 201)
        try await #expect(put("v2", "http://127.0.0.1:9/v2") == 200)
        try await #expect(put("v2", "http://127.0.0.1:9") == 409)
        try await #expect(put("v3", "http://127.0.0.1:9/v1") == 409)
        try await #expect(put("v3", "http://127.0.0.1:9/v3?a=b") == 422)
        #expect(try Files.text(of: file).contains("origin: \"http://127.0.0.1:9/v2\""))
        child.signal(SIGTERM)
        try await #expect(child.ending() == .exit(0))
    }

    /// Gateways open, move and close with a reload; a connection that is open goes where the gateway leads now.
    @Test func aReloadOpensAndClosesGateways() async throws {
        let (one, two) = (try await NotesServer.start(seed: [["title": "one"]]), try await NotesServer.start(seed: [["title": "two"]]))
        let server = try await ServerProcess.start(ServerSettings(upstream: one.port))
        let kept = try await RawConnection.open(server.gateway)
        try await kept.send("GET /v1/notes/1 HTTP/1.1\r\nHost: \(server.gateway)\r\n\r\n")
        try await #expect(kept.response().body.contains("one"))
        // Another upstream, with a gateway of its own.
        let port = FreePort.next()
        var settings = ServerSettings(upstream: one.port)
        settings.others = [
            ["name": "more", "origin": .string("http://127.0.0.1:\(two.port)"), "gateway": .string("127.0.0.1:\(port)")]
        ]
        try server.configure(settings)
        let opened = try await server.command("reload")
        #expect(opened.status == 0, "\(opened.output)\(opened.errors)")
        try await #expect(Curl.send("GET", "http://127.0.0.1:\(port)/v1/notes/1").text.contains("two"))
        try await #expect(gateways(of: server)["more"] == "127.0.0.1:\(port)")
        // The first gateway leads elsewhere now, and the second is gone.
        try server.configure(ServerSettings(upstream: two.port))
        try await #expect(server.command("reload").status == 0)
        try await kept.send("GET /v1/notes/1?again HTTP/1.1\r\nHost: \(server.gateway)\r\n\r\n")
        try await #expect(kept.response().body.contains("two"))
        try await #expect(Curl.send("GET", "http://127.0.0.1:\(port)/v1/notes/1").status == 0)
        try await #expect(gateways(of: server).keys.sorted() == ["notes"])
        // The port of a listener that is not ours: nothing changes.
        let other = try await NotesServer.start()
        settings.others = [
            ["name": "more", "origin": .string("http://127.0.0.1:\(two.port)"), "gateway": .string("127.0.0.1:\(other.port)")]
        ]
        try server.configure(settings)
        let refused = try await server.command("reload")
        #expect(refused.status == 1 && refused.errors.contains("port is in use"), "\(refused.errors)")
        try await #expect(Curl.send("GET", "http://\(server.gateway)/v1/notes/1?b").text.contains("two"))
        await kept.close()
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        for api in [one, two, other] { await api.stop() }
    }
}
