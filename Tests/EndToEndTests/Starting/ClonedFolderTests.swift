// A working directory that came with a clone: what its rockpool.yaml decides, and what it does not
// (docs/reference/configuration.md#working-directory).
import Foundation
import RockpoolTesting
import Testing

@Suite(.serialized) struct ClonedFolderTests {
    let clone: Scratch
    let home: Scratch

    init() throws { (clone, home) = (try Scratch(), try Scratch()) }

    private var environment: [String: String] {
        ["HOME": home.path, "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "XDG_CACHE_HOME": "", "XDG_RUNTIME_DIR": ""]
    }

    private static let serve = ["serve", "--proxy-listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]

    private func rockpool(_ arguments: [String]) async throws -> Command {
        try await Command.rockpool(arguments, environment: environment, directory: clone.path)
    }

    private func isServed() async throws -> Bool {
        let child = try await ChildProcess(Binary.path, Self.serve, environment: environment, directory: clone.path)
        try await eventually("a start or a refusal") { child.output.contains("rockpool ready") || !child.isRunning }
        let isReady = child.output.contains("rockpool ready")
        if isReady {
            try await eventually("its first line") { child.errors.contains("\n") }
            #expect(
                child.errors.hasPrefix("rockpool: configuration \(clone.path)/rockpool.yaml, found in the working directory\n"),
                "\(child.errors)")
        }
        child.signal(SIGTERM)
        _ = try await child.ending()
        return isReady
    }

    private var hostile: [(yaml: String, key: String)] {
        [
            ("notify: [{ on: [dead], command: [/bin/sh, -c, 'touch \(clone.path)/ran'] }]", "notify[0].command"),
            ("storage: { state_dir: state }", "storage.state_dir"), ("admin: { socket: admin.sock }", "admin.socket"),
            ("upstreams: [{ name: a, origin: 'https://a.test', tls: { ca_file: ca.pem } }]", "upstreams[0].tls.ca_file"),
            ("upstreams: [{ name: a, origin: 'https://a.test', via: 'http://evil.test:3128' }]", "upstreams[0].via"),
            ("via: [{ hosts: ['*'], url: 'http://evil.test:3128' }]", "via"), ("proxy: { allow: [0.0.0.0/0] }", "proxy.allow"),
        ]
    }

    @Test func theFileOfACloneDecidesNothing() async throws {
        for (yaml, key) in hostile {
            try clone.write("log: { access: \"off\" }\n\(yaml)\n", to: "rockpool.yaml")
            for arguments in [Self.serve, ["config", "check"], ["config", "show"]] {
                let run = try await rockpool(arguments)
                let lines = run.errors.split(separator: "\n").map(String.init)
                #expect(run.status == 78 && lines.count == 2, "\(arguments): \(run.status) \(run.errors)")
                #expect(lines.first == "rockpool: configuration \(clone.path)/rockpool.yaml, found in the working directory")
                let says = "\(clone.path)/rockpool.yaml:2: \(key): this file was found"
                #expect(lines.last?.hasPrefix(says) == true && lines.last?.hasSuffix("run: rockpool config trust") == true, "\(run.errors)")
            }
        }
        #expect(
            !FileManager.default.fileExists(atPath: clone.path + "/state") && !FileManager.default.fileExists(atPath: clone.path + "/ran"))
        // What declares an API is served without a question, and a file that the user names decides.
        try clone.write("upstreams: [{ name: a, origin: 'http://127.0.0.1:9', gateway: '127.0.0.1:0' }]\n", to: "rockpool.yaml")
        try await #expect(isServed())
        try clone.write("storage: { state_dir: state }\n", to: "rockpool.yaml")
        try await #expect(rockpool(["config", "check", "rockpool.yaml"]).status == 0)
        try await #expect(rockpool(["config", "check", "--config", "rockpool.yaml"]).status == 0)
    }

    @Test func aConsentHoldsForAPathAndADigest() async throws {
        let yaml = "storage: { state_dir: state, cache_dir: cache }\n"
        try clone.write(yaml, to: "rockpool.yaml")
        let trust = try await rockpool(["config", "trust"])
        #expect(trust.status == 0 && trust.output.contains("rockpool.yaml:1: storage.state_dir: "), "\(trust.output)\(trust.errors)")
        let book = home.path + "/.local/state/rockpool/trusted-files"
        let modes = [Files.mode(of: book), Files.mode(of: home.path + "/.local/state/rockpool")]
        #expect(modes == [0o600, 0o700])
        try await #expect(isServed())
        #expect(FileManager.default.fileExists(atPath: clone.path + "/state/data.sqlite"))
        // Another content, another path, and the content of before.
        try clone.write(yaml + "# more\n", to: "rockpool.yaml")
        try await #expect(rockpool(Self.serve).status == 78)
        let other = try Scratch()
        try other.write(yaml, to: "rockpool.yaml")
        try await #expect(Command.rockpool(["config", "check"], environment: environment, directory: other.path).status == 78)
        try clone.write(yaml, to: "rockpool.yaml")
        try await #expect(rockpool(["config", "check"]).status == 0)
        // A book that others may read or write is none.
        try Files.setMode(0o644, of: book)
        try await #expect(rockpool(["config", "check"]).status == 78)
        try Files.setMode(0o600, of: book)
        try await #expect(rockpool(["config", "trust", "--revoke"]).status == 0)
        try await #expect(rockpool(["config", "check"]).status == 78)
        try await #expect(rockpool(["config", "trust", "--revoke"]).status == 1)
    }

    /// The server is asked on a terminal once, and only for a start.
    @Test(arguments: [true, false]) func aTerminalIsAsked(agrees: Bool) async throws {
        try clone.write("notify: [{ on: [dead], command: [/bin/true] }]\n", to: "rockpool.yaml")
        let script = """
            import os, pty, signal, sys
            child, terminal = pty.fork()
            if child == 0: os.execv(sys.argv[2], sys.argv[2:])
            seen = b""
            asked = False
            while True:
                try: piece = os.read(terminal, 4096)
                except OSError: break
                if not piece: break
                seen += piece
                if b"[y/N]" in seen and not asked:
                    asked = True
                    os.write(terminal, sys.argv[1].encode() + b"\\n")
                if b"rockpool ready" in seen: os.kill(child, signal.SIGTERM)
            print(seen.decode())
            print("status", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            """
        let run = try await Command.run(
            "/usr/bin/env", ["python3", "-c", script, agrees ? "y" : "", Binary.path] + Self.serve, environment: environment,
            directory: clone.path)
        #expect(run.output.contains("notify[0].command: [   \"/bin/true\" ]"), "\(run.output)\(run.errors)")
        #expect(run.output.contains(agrees ? "status 0" : "status 78") && run.output.contains("rockpool ready") == agrees, "\(run.output)")
        try await #expect(isServed() == agrees)
    }

    /// A stopped server's commands do not call an upstream undeclared of whose file they do not know.
    @Test func aStoppedServerIsAskedWithoutAConfiguration() async throws {
        let gateway = FreePort.next()
        try clone.write(
            "upstreams: [{ name: notes, origin: 'http://127.0.0.1:9', gateway: '127.0.0.1:\(gateway)' }]\n", to: "rockpool.yaml")
        let child = try await ChildProcess(Binary.path, Self.serve, environment: environment, directory: clone.path)
        try await eventually("the ready line") { child.output.contains("rockpool ready") || !child.isRunning }
        let write = try await Curl.send(
            "PUT", "http://127.0.0.1:\(gateway)/v1/notes/1", fields: ["Content-Type: application/json"], body: "{}")
        #expect(write.status == 202, "\(write.text)\(child.errors)")
        child.signal(SIGTERM)
        try await #expect(child.ending() == .exit(0))
        let unread = "no configuration was read; name its file by --config; ./rockpool.yaml is read by serve and config only"
        let list = try await rockpool(["outbox", "ls"])
        #expect(list.status == 0 && list.output.contains(unread) && !list.output.contains("not declared"), "\(list.output)\(list.errors)")
        let named = try await rockpool(["outbox", "ls", "--config", "rockpool.yaml"])
        #expect(named.status == 0 && named.output.contains("/v1/notes/1") && !named.output.contains("no configuration"), "\(named.output)")
        let other = try await rockpool(["outbox", "ls", "--upstream", "nots"])
        #expect(
            other.status == 1 && other.errors.contains("no upstream nots is known: ") && other.errors.contains(unread), "\(other.errors)")
    }

    /// `env` and `run` send programs to the user's proxy and make them trust the user's authority, wherever they are called.
    @Test func otherCommandsDoNotReadIt() async throws {
        try clone.write(
            "proxy: { listen: 'evil.test:3128' }\ndefaults: { intercept: true }\nstorage: { state_dir: state }\n", to: "rockpool.yaml")
        for arguments in [["env"], ["run", "--", "/usr/bin/env"]] {
            let run = try await rockpool(arguments)
            #expect(run.status == 0 && run.output.contains("http://127.0.0.1:7625"), "\(arguments): \(run.output)\(run.errors)")
            #expect(!run.output.contains("evil") && !run.output.contains(clone.path) && !run.errors.contains("rockpool: configuration"))
        }
        #expect(!FileManager.default.fileExists(atPath: clone.path + "/state"))
        try FileManager.default.createDirectory(atPath: home.path + "/.config/rockpool", withIntermediateDirectories: true)
        let own = home.path + "/.config/rockpool/rockpool.yaml"
        try Files.write(Array("proxy: { listen: '127.0.0.1:7999' }\n".utf8), to: own)
        for arguments in [["env"], ["run", "--", "/usr/bin/env"]] {
            let run = try await rockpool(arguments)
            #expect(run.output.contains("http://127.0.0.1:7999") && !run.errors.contains("configuration \(own)"), "\(run.errors)")
        }
        let status = try await rockpool(["status"])
        #expect(status.status == 69 && !status.errors.contains(clone.path), "\(status.errors)")
    }
}
