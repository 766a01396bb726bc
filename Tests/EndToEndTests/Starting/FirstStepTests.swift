// The first minutes of a user: a server without a file, a file in the working directory, the dashboard, a reload, a service
// (docs/reference/cli.md#serve).
import Foundation
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct FirstStepTests {
    /// Starts `serve` in an empty home and calls `test` with its ready line.
    private func serving(
        _ arguments: [String], in scratch: Scratch, _ test: (_ output: String, _ errors: () -> String) async throws -> Void
    ) async throws {
        let listen = ["--proxy-listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]
        let child = try await ChildProcess(
            Binary.path, ["serve"] + listen + arguments, environment: environment(scratch), directory: scratch.path)
        try await eventually("the ready line") { child.output.contains("rockpool ready") || !child.isRunning }
        try await eventually("the dashboard's address") { child.errors.contains("dashboard http://127.0.0.1:") || !child.isRunning }
        try await test(child.output, { child.errors })
        child.signal(SIGTERM)
        try await #expect(child.ending() == .exit(0))
    }

    private func environment(_ scratch: Scratch) -> [String: String] {
        ["HOME": scratch.path, "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "XDG_CACHE_HOME": "", "XDG_RUNTIME_DIR": ""]
    }

    @Test func anUpstreamNeedsNoFile() async throws {
        let (api, scratch) = (try await NotesServer.start(), try Scratch())
        try await serving(["--upstream", "http://127.0.0.1:\(api.port)"], in: scratch) { _, errors in
            let gateway = try #require(errors().firstMatch(of: /gateway (http:\/\/127\.0\.0\.1:[0-9]+)\//)?.1, "\(errors())")
            try await #expect(Curl.send("GET", "\(gateway)/v1/notes").status == 200)
            #expect(errors().contains("configuration none"))
        }
        await api.stop()
        let bad = try await Command.rockpool(
            ["serve", "--upstream", "nonsense"], environment: environment(scratch), directory: scratch.path)
        #expect(bad.status == 78 && bad.errors.contains("--upstream: \"nonsense\" is not"), "\(bad.errors)")
    }

    /// The API of the quick start is after a kill what it was: no id and no version stands for two notes.
    @Test func theAPIOfTheDemoKeepsItsNotes() async throws {
        let (scratch, port) = (try Scratch(), FreePort.next())
        let (url, file) = ("http://127.0.0.1:\(port)/v1/notes", ".local/share/rockpool/demo-notes-\(port).json")
        var ids: [String] = []
        for version in [1, 2] {
            let child = try await ChildProcess(Binary.path, ["demo", "--api", "--port", "\(port)"], environment: environment(scratch))
            try await eventually("the API") { child.output.contains("a notes API") || !child.isRunning }
            #expect(child.output == "a notes API: \(url); its notes are kept in \(scratch.path)/\(file)\n")
            let note = try await Curl.send("GET", "\(url)/1")
            #expect(note["etag"] == "\"1-\(version)\"", "\(note)")
            let fields = ["Content-Type: application/json"]
            try await #expect(Curl.send("PUT", "\(url)/1", fields: fields, body: #"{"title": "High tide"}"#).status == 200)
            let made = try await Curl.send("POST", url, fields: fields, body: #"{"title": "new"}"#)
            ids.append(try #require(made["location"], "\(made)"))
            child.signal(SIGKILL)
            _ = try await child.ending()
        }
        #expect(ids == ["/v1/notes/3", "/v1/notes/4"])
        try scratch.write("{}", to: file)
        let refused = try await Command.rockpool(["demo", "--api", "--port", "\(port)"], environment: environment(scratch))
        #expect(refused.status == 1 && refused.errors.contains("remove it to begin anew"), "\(refused.errors)")
    }

    @Test func aFileOfTheWorkingDirectoryIsReadAndSaid() async throws {
        let scratch = try Scratch()
        try scratch.write("log: { access: \"off\" }\nstorage: { cache_limit: 77 MB }\n", to: "rockpool.yaml")
        try await serving([], in: scratch) { _, errors in
            #expect(
                errors().hasPrefix("rockpool: configuration \(scratch.path)/rockpool.yaml, found in the working directory\n"), "\(errors())"
            )
            #expect(errors().contains("/, configuration \(scratch.path)/rockpool.yaml"), "\(errors())")
            let status = try await Command.rockpool(["status"], environment: environment(scratch), directory: scratch.path)
            #expect(status.status == 0 && status.output.contains("\(scratch.path)/rockpool.yaml"), "\(status.output)\(status.errors)")
        }
        // A file that everyone may write is not one of the user's.
        try Files.setMode(0o666, of: scratch.path + "/rockpool.yaml")
        let shown = try await Command.rockpool(["config", "show"], environment: environment(scratch), directory: scratch.path)
        #expect(!shown.output.contains("77 MB"), "\(shown.output)")
    }

    @Test func aReloadIsAnsweredWithWhatWaits() async throws {
        let server = try await ServerProcess.start(ServerSettings())
        try server.configure(ServerSettings(upstream: FreePort.next(), storage: ["cache_limit": "77 MB"]))
        let taken = try await server.command("reload")
        #expect(taken.status == 0 && taken.output == "the configuration is reloaded\n", "\(taken.output)\(taken.errors)")
        try await #expect(server.get("/v1/storage").json?["cache"]?["limitBytes"]?.integer == 77_000_000)
        try server.configure(ServerSettings(upstream: FreePort.next(), storage: ["memory_limit": "7 MB"]))
        let reload = try await server.command("reload")
        #expect(reload.status == 1 && reload.output.contains("storage.memory_limit changes with a restart"), "\(reload.errors)")
        #expect(reload.errors.contains("systemctl restart rockpool"), "\(reload.errors)")
        try Files.write(Array("proxy:\n  lsten: x\n".utf8), to: server.configurationFile)
        let refused = try await Command.rockpool(["reload", "--state-dir", server.stateDirectory])
        #expect(refused.status == 1 && refused.errors.contains("lsten"), "\(refused.errors)")
    }

    @Test func theDashboardOpensOnceWithACode() async throws {
        let server = try await ServerProcess.start(ServerSettings())
        let opened = try await server.command("dashboard", "--print")
        let code = try #require(opened.output.firstMatch(of: /#once=([0-9a-f]{32})/)?.1, "\(opened.output)\(opened.errors)")
        #expect(opened.output.hasPrefix("http://\(server.admin)/#once="))
        let body = "{\"code\": \"\(code)\"}"
        func exchange() async throws -> Curl {
            try await Curl.send(
                "POST", "http://\(server.admin)/v1/dashboard/token", fields: ["Content-Type: application/json"], body: body)
        }
        let first = try await exchange()
        try #expect(first.status == 200 && first.json?["token"]?.string == server.token)
        try await #expect(exchange().status == 401)
        try await #expect(Curl.send("POST", "http://\(server.admin)/v1/dashboard/codes").status == 401)
    }

    @Test func theServiceOfAUserIsAUnitOfSystemd() async throws {
        let scratch = try Scratch()
        let program = try scratch.write("#!/bin/sh\necho \"$@\" >> \(scratch.path)/calls\n", to: "systemctl")
        try Files.setMode(0o755, of: program)
        var variables = environment(scratch)
        variables["PATH"] = scratch.path + ":/usr/bin:/bin"
        let file = try scratch.write("log: { access: off }\n", to: "my own.yaml")
        let install = try await Command.rockpool(["service", "install", "--config", file], environment: variables)
        #expect(install.status == 0, "\(install.errors)")
        let unit = scratch.path + "/.config/systemd/user/rockpool.service"
        let text = try Files.text(of: unit)
        #expect(text.contains(" serve --config \"\(file)\"\n") && text.contains("Type=notify"), "\(text)")
        if FileManager.default.isExecutableFile(atPath: "/usr/bin/systemd-analyze") {
            let verdict = try await Command.run("/usr/bin/systemd-analyze", ["verify", "--man=no", unit])
            #expect(verdict.status == 0 && !verdict.errors.contains("rockpool.service:"), "\(verdict.errors)")
        }
        try await #expect(Command.rockpool(["service", "status"], environment: variables).status == 0)
        try FileManager.default.copyItem(atPath: program, toPath: scratch.path + "/journalctl")
        try await #expect(Command.rockpool(["service", "logs"], environment: variables).status == 0)
        try await #expect(Command.rockpool(["service", "uninstall"], environment: variables).status == 0)
        #expect(!FileManager.default.fileExists(atPath: unit))
        // A user without a session: systemd's tool cannot reach the user's manager.
        try scratch.write("#!/bin/sh\necho 'Failed to connect to bus: No medium found' >&2\nexit 1\n", to: "systemctl")
        for verb in ["install", "status"] {
            let lost = try await Command.rockpool(["service", verb, "--config", file], environment: variables)
            #expect(
                lost.status == 1 && lost.output.isEmpty && lost.errors.split(separator: "\n").count == 1, "\(lost.output)\(lost.errors)")
            #expect(lost.errors.hasPrefix("rockpool: this user has no session of systemd (Failed to connect to bus"), "\(lost.errors)")
        }
        #expect(!FileManager.default.fileExists(atPath: unit))
        let calls = try Files.text(of: scratch.path + "/calls")
        for call in ["enable rockpool", "restart rockpool", "status rockpool", "disable --now rockpool", "-u rockpool"] {
            #expect(calls.contains(call), "\(calls)")
        }
    }

    @Test func aConfigurationIsProposedFromWhatTheAPIServes() async throws {
        let (api, scratch) = (try await NotesServer.start(seed: [["title": "a"]]), try Scratch())
        let url = "http://127.0.0.1:\(api.port)"
        let made = try await Command.rockpool(
            ["init", url, "--collection", "/v1/notes"], environment: environment(scratch), directory: scratch.path)
        #expect(made.status == 0, "\(made.errors)")
        let check = try await Command.rockpool(["config", "check"], environment: environment(scratch), directory: scratch.path)
        #expect(check.status == 0, "\(check.errors)")
        let text = try Files.text(of: scratch.path + "/rockpool.yaml")
        #expect(text.contains("collection: \"/v1/notes\"") && text.contains("offline_response: optimistic"), "\(text)")
        let again = try await Command.rockpool(["init", url], environment: environment(scratch), directory: scratch.path)
        #expect(again.status == 1 && again.errors.contains("--force"), "\(again.errors)")
        await api.stop()
    }

    /// The URL of a collection is enough: one of its entries shows where the object lies in an item's body.
    @Test func theURLOfACollectionIsEnough() async throws {
        let scratch = try Scratch()
        let api = try await RawServer.start { connection in
            let head = try await connection.read(through: "\r\n\r\n")
            let bodies = [
                "/v1/records": #"{"data": [{"id": "a", "last_modified": 7}]}"#,
                "/v1/records/a": #"{"data": {"id": "a"}, "permissions": {}}"#,
            ]
            let body = bodies[String(head.split(separator: " ")[1])]
            let status = body == nil ? "404 Not Found" : "200 OK"
            try await connection.send(
                "HTTP/1.1 \(status)\r\nContent-Length: \((body ?? "").utf8.count)\r\nConnection: close\r\n\r\n\(body ?? "")")
        }
        let made = try await Command.rockpool(
            ["init", "http://127.0.0.1:\(api.port)/v1/records"], environment: environment(scratch), directory: scratch.path)
        #expect(made.status == 0 && made.output.contains("1 resource"), "\(made)")
        let text = try Files.text(of: scratch.path + "/rockpool.yaml")
        for line in [#"collection: "/v1/records""#, #"items: "/data""#, #"envelope: "/data""#, "offline_response: optimistic"] {
            #expect(text.contains(line), "\(text)")
        }
    }

    /// Names from a description and from samples end no comment and no value, in whatever version of YAML they are read.
    @Test(arguments: ["\u{2028}", "\u{2029}", "\u{85}", "\\n", "\\r"]) func aHostileAPIWritesNoConfiguration(end: String) async throws {
        let scratch = try Scratch()
        let name = "x\(end)notify: [{ on: [dead], command: [/bin/sh, -c, id] }]\(end)#"
        let description =
            ##"{"openapi": "3.0.0", "paths": {"/a": {"get": {"responses": {"200": {"content": {"application/json": {"schema": "##
            + ##"{"properties": {"\##(name)": {"type": "array"}, "id": {}}}}}}}}}, "/a/{\##(name)}": {"get": {}}, "/{b}/\##(name)/{id}": {}}}"##
        let list = ##"[{"id": "a", "\##(name)": 1}]"##
        let api = try await RawServer.answering { request in
            let path = request.split(separator: " ").dropFirst().first ?? ""
            let body = path == "/openapi.json" ? description : path == "/v1/records" ? list : ""
            return "HTTP/1.1 \(body.isEmpty ? "404 Not Found" : "200 OK")\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
        }
        for (number, path) in ["", "/v1/records"].enumerated() {
            let file = "r\(number).yaml"
            let made = try await Command.rockpool(
                ["init", "http://127.0.0.1:\(api.port)\(path)", "--output", file], environment: environment(scratch),
                directory: scratch.path)
            #expect(made.status == 0 && made.output.contains("\(number) resource"), "\(made.output)\(made.errors)")
            let text = try Files.text(of: scratch.path + "/" + file)
            #expect(text.unicodeScalars.allSatisfy { $0 == "\n" || (0x20..<0x7F).contains($0.value) }, "\(text)")
            let shown = try await Command.rockpool(
                ["config", "show", file, "--format", "json"], environment: environment(scratch), directory: scratch.path)
            #expect(shown.status == 0 && shown.output.contains("\"notify\": []"), "\(shown.errors)")
        }
        await api.stop()
    }

    /// Ten lines of aliases stand for a thousand million nodes.
    @Test func aDescriptionCannotStandForMoreThanItIs() async throws {
        let scratch = try Scratch()
        let level = { (number: Int) in "a\(number): &a\(number) [\(Array(repeating: "*a\(number - 1)", count: 9).joined(separator: ","))]\n"
        }
        try scratch.write("openapi: 3.0.0\npaths: {}\na0: &a0 [x,x]\n" + (1...9).map(level).joined(), to: "bomb.yaml")
        let limited = #"ulimit -v 4000000; exec "$0" "$@""#
        let run = try await Command.run(
            "/bin/sh", ["-c", limited, Binary.path, "init", "http://127.0.0.1:9", "--openapi", "bomb.yaml"],
            environment: environment(scratch), directory: scratch.path, within: .seconds(20))
        #expect(run.status == 1 && run.errors.contains("bomb.yaml is neither JSON nor YAML"), "\(run.status) \(run.errors)")
    }

    /// What is stored for one identity counts as well.
    @Test(arguments: [[], ["Authorization: Bearer pearl"]]) func trafficShowsResources(fields: [String]) async throws {
        let (api, scratch) = (try await NotesServer.start(seed: [["title": "a"]]), try Scratch())
        let (proxy, admin, gateway) = (FreePort.next(), FreePort.next(), FreePort.next())
        let file = try scratch.write(
            """
            proxy: { listen: "127.0.0.1:\(proxy)" }
            admin: { listen: "127.0.0.1:\(admin)" }
            storage: { cache_dir: c, state_dir: s, min_free: 1 MB }
            upstreams:
              - name: notes
                origin: http://127.0.0.1:\(api.port)
                gateway: 127.0.0.1:\(gateway)
                policy: offline-first
            """, to: "learning.yaml")
        let child = try await ChildProcess(Binary.path, ["serve", "--config", file])
        try await eventually("the ready line") { child.output.contains("rockpool ready") || !child.isRunning }
        try await #expect(Curl.send("GET", "http://127.0.0.1:\(gateway)/v1/notes", fields: fields).status == 200)
        let learned = try await Command.rockpool(["learn", "--config", file])
        #expect(learned.status == 0 && learned.output.contains("+    resources:"), "\(learned.output)\(learned.errors)")
        let patch = try await Command.run("/usr/bin/patch", [file], input: learned.output)
        #expect(patch.status == 0, "\(patch.output)\(patch.errors)")
        let check = try await Command.rockpool(["config", "check", file])
        #expect(check.status == 0, "\(check.errors)")
        try await #expect(Command.rockpool(["reload", "--config", file]).status == 0)
        child.signal(SIGTERM)
        try await #expect(child.ending() == .exit(0))
        await api.stop()
    }

    /// A declaration in one line has no place for a diff: what to insert is said, and a diff of the others is still made.
    @Test func aFileInBracketsIsToldWhatToInsert() async throws {
        let (api, scratch) = (try await NotesServer.start(seed: [["title": "a"]]), try Scratch())
        let (proxy, admin, gateway) = (FreePort.next(), FreePort.next(), FreePort.next())
        let text = """
            proxy: { listen: "127.0.0.1:\(proxy)" }
            admin: { listen: "127.0.0.1:\(admin)" }
            storage: { cache_dir: c, state_dir: s, min_free: 1 MB }
            upstreams: [{ name: notes, origin: "http://127.0.0.1:\(api.port)", gateway: "127.0.0.1:\(gateway)", policy: offline-first, resources: [
              ] }]

            """
        let file = try scratch.write(text, to: "learning.yaml")
        let child = try await ChildProcess(Binary.path, ["serve", "--config", file])
        try await eventually("the ready line") { child.output.contains("rockpool ready") || !child.isRunning }
        try await #expect(Curl.send("GET", "http://127.0.0.1:\(gateway)/v1/notes").status == 200)
        let learned = try await Command.rockpool(["learn", "--config", file])
        #expect(learned.status == 0 && learned.output.isEmpty, "\(learned.output)\(learned.errors)")
        let lines = learned.errors.split(separator: "\n").map(String.init)
        #expect(lines.first?.hasPrefix("rockpool: \(file):4: notes is written in a form that a diff cannot extend") == true, "\(lines)")
        let entry = try #require(lines.first { $0.hasPrefix("  { \"collection\": \"/v1/notes\"") }, "\(lines)")
        try Files.write(Array(text.replacing("resources: [\n", with: "resources: [\n\(entry)\n").utf8), to: file)
        let check = try await Command.rockpool(["config", "check", file])
        #expect(check.status == 0, "\(check.errors)")
        child.signal(SIGTERM)
        try await #expect(child.ending() == .exit(0))
        await api.stop()
    }

    @Test func theVersionIsToldToPrograms() async throws {
        let version = try await Command.rockpool(["version", "--json"])
        let document = try JSONValue.parse(Array(version.output.utf8))
        try await #expect(Command.rockpool(["--version"]).output == "\(document["version"]?.string ?? "")\n")
        #expect((document["dataSchema"]?.integer ?? 0) >= 5 && (document["cacheSchema"]?.integer ?? 0) >= 7)
    }
}
