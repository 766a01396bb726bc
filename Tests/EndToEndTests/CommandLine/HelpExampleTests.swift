// Every example in the help of every command is run as it stands, in a shell (docs/reference/cli.md#commands).
import Foundation
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(10))) struct HelpExampleTests {
    /// A command and one of its examples.
    struct Example: Hashable { var command, line: String }

    /// Reads the examples of all commands from the program itself.
    private func examples() async throws -> (commands: [String], examples: [Example]) {
        let dump = try await Command.rockpool(["--experimental-dump-help"])
        let root = try #require(try JSONValue.parse(Array(dump.output.utf8))["command"])
        var (commands, found): ([String], [Example]) = ([], [])
        func walk(_ command: JSONValue, below path: [String]) {
            let words = path + [command["commandName"]?.string ?? ""]
            let name = words.joined(separator: " ")
            if name != "rockpool" { commands.append(name) }
            let lines = (command["discussion"]?.string ?? "").split(separator: "\n", omittingEmptySubsequences: false)
            for line in lines.drop(while: { $0 != "EXAMPLES" }).dropFirst().prefix(while: { $0.hasPrefix("  ") }) {
                found.append(Example(command: name, line: String(line.drop { $0 == " " })))
            }
            for inner in command["subcommands"]?.array ?? [] where inner["commandName"]?.string != "help" { walk(inner, below: words) }
        }
        walk(root, below: [])
        return (commands, found)
    }

    @Test func everyCommandHasAnExampleThatFitsATerminal() async throws {
        let (commands, examples) = try await examples()
        #expect(commands.count > 50)
        let without = commands.filter { name in !examples.contains { $0.command == name } }
        #expect(without == [], "commands without an example")
        #expect(examples.filter { $0.line.count > 78 } == [], "examples that do not fit into 80 columns")
        let strange = examples.filter { !$0.line.contains($0.command) && !$0.line.contains("rockpool") }
        #expect(strange == [])
    }

    @Test func everyExampleWorks() async throws {
        try await ExampleWorld.with { world in
            for example in try await examples().examples where ExampleWorld.isHarmless(example.line) {
                let (line, run) = try await world.run(example.command, line: example.line)
                let said = "\(line)\n\(run.status)\n\(run.output.suffix(600))\n\(run.errors.suffix(600))"
                // A command that goes on until it is stopped is ended by `timeout`.
                #expect(run.status == 0 || (run.status == 124 && ExampleWorld.endless(line)), "\(said)")
            }
        }
    }
}

/// A server with everything that the examples name.
struct ExampleWorld {
    let world: World
    let scratch: Scratch
    /// A directory with the program and with stand-ins for the programs that would change the machine.
    private var tools: String { scratch.path + "/bin" }

    static func with(_ body: (ExampleWorld) async throws -> Void) async throws {
        let rules: JSONValue = [
            "resources": [["collection": "/v1/notes", "item": "/v1/notes/{id}", "fields": ["/title": "ask"]]]
        ]
        let notices: JSONValue = [["on": ["dead"], "command": ["/bin/cat"]]]
        try await World.with(upstream: rules, proxy: ["transparent": .string("127.0.0.1:\(FreePort.next())")], notify: notices) { world in
            let own = ExampleWorld(world: world, scratch: try Scratch())
            try own.prepare()
            try await body(own)
        }
    }

    private func prepare() throws {
        try FileManager.default.createDirectory(atPath: tools, withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(atPath: tools + "/rockpool", withDestinationPath: Binary.path)
        for name in ["systemctl", "journalctl", "update-ca-certificates"] { try stand(in: name) }
        let url = "http://127.0.0.1:\(world.api.port)"
        try scratch.write("\(url)/v1/notes\n\(url)/v1/notes/1\n", to: "urls.txt")
        try scratch.write(#"{"title": "merged", "id": "1"}"#, to: "merged.json")
        try scratch.write(#"{"body": {"title": "edited"}}"#, to: "edit.json")
        try scratch.write("", to: "empty")
    }

    /// A program that does nothing and succeeds.
    private func stand(in name: String) throws {
        try scratch.write("#!/bin/sh\nexit 0\n", to: "bin/\(name)")
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: tools + "/\(name)")
    }

    /// True if the machine stays as it is: what changes the trust store of the system needs a mount namespace. What needs a stopped
    /// server and a fleet's database is run in `Tests/fleet`: `outbox migrate` by S15, `fleet rejoin` by S23, `fleet forget` by S25.
    static func isHarmless(_ line: String) -> Bool {
        (!line.contains("ca install") || getuid() == 0) && !line.contains("outbox migrate")
            && !line.contains("fleet rejoin") && !line.contains("fleet forget")
    }

    /// True for a command that runs until it is stopped.
    static func endless(_ line: String) -> Bool {
        (line.contains("rockpool tail") && !line.contains("--no-follow") && !line.contains("--har"))
            || line.contains("rockpool serve") || line.contains("--keep") || line.contains("--follow")
            || line.contains("fleet collect") || line.contains("demo --api")
    }

    /// Prepares what the example needs, runs it in a shell of its own directory, and puts the server back.
    func run(_ command: String, line: String) async throws -> (line: String, run: Command) {
        let directory = try Scratch()
        for name in ["urls.txt", "merged.json", "edit.json"] {
            try FileManager.default.copyItem(atPath: scratch.path + "/\(name)", toPath: directory.path + "/\(name)")
        }
        // For `serve` and `config` the first, for all other commands the second.
        try FileManager.default.createDirectory(atPath: directory.path + "/.config/rockpool", withIntermediateDirectories: true)
        for file in ["/rockpool.yaml", "/.config/rockpool/rockpool.yaml"] {
            try FileManager.default.copyItem(atPath: world.server.configurationFile, toPath: directory.path + file)
        }
        var line = line.replacing("https://api.example.com", with: "http://127.0.0.1:\(world.api.port)")
            .replacing("http://api.example.com", with: "http://127.0.0.1:\(world.api.port)")
        if line.contains(" ID") { line = line.replacing(" ID", with: " " + (try await id(for: command, line: line))) }
        try await prepare(for: command, in: directory)
        let own = ["service", "serve", "init", "demo", "ca ", "remove"].contains { line.contains("rockpool \($0)") }
        var environment = [
            "PATH": "\(tools):/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": directory.path, "EDITOR": "true",
            "LANG": "C.UTF-8", "SHELL": "/bin/bash",
        ]
        // A service is installed where none runs.
        if line.contains("rockpool service") { environment["ROCKPOOL_ADMIN_LISTEN"] = "127.0.0.1:\(FreePort.next())" }
        if !own { environment["ROCKPOOL_STATE_DIR"] = world.server.stateDirectory }
        if line.contains("rockpool ca ") { environment["ROCKPOOL_STATE_DIR"] = directory.path + "/state" }
        if line.contains("--state-dir") { environment["ROCKPOOL_STATE_DIR"] = nil }
        var script = own ? line.replacing("rockpool serve", with: "rm -rf rockpool.yaml .config; rockpool serve \(Self.ports)") : line
        // The file of the directory names the directories of the server.
        if ["config check", "config show"].contains(where: line.contains) { script = "rockpool config trust > /dev/null; " + script }
        if line.contains("rockpool remove") {
            script = "rm -rf rockpool.yaml .config; rockpool add http://127.0.0.1:\(world.api.port) --name notes > /dev/null; \(script)"
        }
        if line.contains("service uninstall") { script = "rockpool service install > /dev/null; " + script }
        if line.contains("ca install") {
            script = "unshare -m sh -c \(Self.quoted("mount -t tmpfs none /usr/local/share/ca-certificates && {\n\(script)\n}"))"
        }
        if line.contains("rockpool ca "), !line.contains("ca init") { script = "rockpool ca init > /dev/null && \(script)" }
        // The editor of `outbox edit`, a password and a question need a terminal, and the last two an answer.
        let asks = ["identities forget", "ca install"].contains { line.contains($0) && !line.contains("--yes") }
        let isTyped = line.hasPrefix("rockpool proxy-password")
        if asks || isTyped || (line.contains("outbox edit") && !line.contains("--")) {
            let answers = (isTyped ? ["a long secret", "a long secret"] : ["y"]).map { "sleep 2; echo '\($0)'; " }.joined()
            script = "{ \(answers)sleep 3; } | script -qec \(Self.quoted(script)) /dev/null"
        }
        let limit = Self.endless(line) ? "4" : "60"
        let run = try await Command.run(
            "/usr/bin/timeout", [limit, "/bin/bash", "-c", script], environment: environment, directory: directory.path,
            within: .seconds(90)
        )
        _ = try? await world.server.command("network", "auto")
        return (line, run)
    }

    /// Free ports, because the usual ones may be taken on the machine of the test.
    private static let ports = "--proxy-listen 127.0.0.1:0 --admin-listen 127.0.0.1:0"

    private static func quoted(_ text: String) -> String { "'" + text.replacing("'", with: "'\\''") + "'" }

    /// The id of a new operation or conflict in the state that the example is about.
    private func id(for command: String, line: String) async throws -> String {
        if line.contains("identities") {
            _ = try await world.send("GET", "/v1/notes?of=a-person", fields: ["Authorization: Bearer of-a-person"])
            return try await eventualValue("the identity") {
                try await world.server.get("/v1/identities").json?["items"]?.array?.first?["id"]?.string
            }
        }
        _ = try await world.server.command("network", "offline")
        if !line.contains("conflicts") {
            let body = #"{"title":"from the boat \#(UUID().uuidString)"}"#
            // An equal request is a repeat of the first.
            if line.contains("outbox repeat") { _ = try await world.queued("POST", "/v1/notes", body: body) }
            return try await world.queued("POST", "/v1/notes", body: body)
        }
        // An open conflict of an earlier example holds the lane.
        for open in try await world.server.get("/v1/conflicts").json?["items"]?.array ?? [] {
            _ = try await world.server.command("conflicts", "resolve", open["id"]?.string ?? "", "--keep", "theirs")
        }
        _ = try await world.server.command("network", "auto")
        try await world.server.outboxIsEmpty()
        _ = try await world.send("GET", "/v1/notes/1")
        _ = try await world.server.command("network", "offline")
        let write = try await world.queued("PATCH", "/v1/notes/1", body: #"{"title":"mine \#(UUID().uuidString)"}"#)
        _ = world.api.edit(note: "1", with: ["title": .string("theirs \(UUID().uuidString)")])
        _ = try await world.server.command("network", "auto")
        _ = try await world.server.operation(write, reaching: "conflicted")
        let id = try #require(try await world.server.get("/v1/conflicts").json?["items"]?.array?.first?["id"]?.string)
        if line.contains("undo") { _ = try await world.server.command("conflicts", "resolve", id, "--keep", "mine") }
        return id
    }

    /// The files and the stored responses that an example needs.
    private func prepare(for command: String, in directory: Scratch) async throws {
        _ = try await world.send("GET", "/v1/notes")
        if command.contains("cache import") || command.contains("cache export") {
            _ = try await world.server.command("cache", "export", directory.path + "/notes.warc")
            _ = try await Command.run("/bin/bash", ["-c", "gzip -c notes.warc > notes.warc.gz; true"], directory: directory.path)
            if command.contains("export") { try? FileManager.default.removeItem(atPath: directory.path + "/notes.warc") }
        }
        if command.contains("outbox import") {
            _ = try await world.server.command("outbox", "export", "--state", "all", "--output", directory.path + "/outbox.jsonl")
        }
        if command.contains("restore") { _ = try await world.server.command("backup", directory.path + "/rockpool.tar") }
        if command.contains("backup") { try? FileManager.default.removeItem(atPath: directory.path + "/rockpool.tar") }
        if command == "rockpool init" { try? FileManager.default.removeItem(atPath: directory.path + "/rockpool.yaml") }
        if command.contains("rockpool ca") {
            let store = directory.path + "/.pki/nssdb"
            try FileManager.default.createDirectory(atPath: store, withIntermediateDirectories: true)
            _ = try await Command.run("/usr/bin/env", ["certutil", "-N", "-d", "sql:\(store)", "--empty-password"])
        }
    }
}
