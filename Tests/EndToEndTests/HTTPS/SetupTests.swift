// Client setup with one command: the authority, the environment, the files for browsers (docs/reference/cli.md#env).
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(3)), .serialized) struct SetupTests {
    private static let settings = ServerSettings(upstream: 9, ["origin": "https://api.example.com", "intercept": true])

    private func json(_ command: Command) throws -> JSONValue { try JSONValue.parse(Array(command.output.utf8)) }

    // MARK: ca

    @Test func anAuthorityIsMadeOnceWithoutAServer() async throws {
        let server = try ServerProcess.prepare(Self.settings)
        try await #expect(server.command("ca", "show").status == 1)
        let made = try await server.command("ca", "init", "--format", "json")
        #expect(made.status == 0, "\(made.errors)")
        let again = try await server.command("ca", "init", "--format", "json")
        let shown = try await server.command("ca", "show", "--format", "json")
        let fingerprint = try #require(try json(made)["fingerprint"]?.string)
        try #expect(json(again)["fingerprint"]?.string == fingerprint && json(shown)["fingerprint"]?.string == fingerprint)
        let key = server.stateDirectory + "/ca/ca.key"
        #expect(Files.mode(of: key) == 0o600 && Files.mode(of: server.stateDirectory) == 0o700)
        let rotated = try await server.command("ca", "rotate", "--format", "json")
        try #expect(rotated.status == 0 && json(rotated)["fingerprint"]?.string != fingerprint)
        // The server uses the rotated authority.
        try await server.start()
        let shownAgain = try await server.command("ca", "show", "--format", "json")
        try #expect(json(shownAgain)["fingerprint"] == json(rotated)["fingerprint"])
        try await server.stop()
    }

    @Test(arguments: [0o644, 0o640, 0o604]) func aKeyThatOthersCanReadStopsTheStart(mode: Int) async throws {
        let server = try ServerProcess.prepare(Self.settings)
        try await #expect(server.command("ca", "init").status == 0)
        try Files.setMode(mode, of: server.stateDirectory + "/ca/ca.key")
        let failure = try await #require(throws: ServerProcess.DidNotStart.self) { try await server.start() }
        #expect(failure.command.status == 78 && failure.command.errors.contains("ca.key"), "\(failure.command.errors)")
        try await #expect(server.command("ca", "show").status == 78)
    }

    @Test func aConstrainedAuthorityIsAskedForAgainWithoutEffect() async throws {
        let server = try ServerProcess.prepare(Self.settings)
        for _ in 0..<2 {
            let made = try await server.command("ca", "init", "--constrain", "Example.com", "api.test.")
            #expect(made.status == 0, "\(made.errors)")
        }
        try await #expect(server.command("ca", "init").status == 0)
        let other = try await server.command("ca", "init", "--constrain", "other.test")
        #expect(other.status == 1 && other.errors.contains("signs for example.com api.test"), "\(other.errors)")
        #expect(other.errors.contains("rockpool ca rotate --constrain other.test"), "\(other.errors)")
    }

    @Test(arguments: ["a b", "*.example.com", "10.0.0.1", "example.com:443", "", ".example.com"])
    func aConstraintThatIsNoDomainIsBadUsage(domain: String) async throws {
        let server = try ServerProcess.prepare(Self.settings)
        for verb in ["init", "rotate"] {
            let failure = try await server.command("ca", verb, "--constrain", domain)
            #expect(failure.status == 64 && failure.errors.contains("such as example.com"), "\(failure.errors)")
        }
        #expect(Files.mode(of: server.stateDirectory + "/ca/ca.key") == nil)
    }

    @Test(.enabled(if: access("/usr/bin/certutil", X_OK) == 0, "certutil is not installed"))
    func aStoreThatFailsHoldsUpNoOther() async throws {
        let server = try ServerProcess.prepare(Self.settings)
        try await #expect(server.command("ca", "init").status == 0)
        let home = try Scratch()
        let (broken, good) = (home.path + "/.pki/nssdb", home.path + "/.mozilla/firefox/a.default")
        for directory in [broken, good] { try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true) }
        try home.write("this is no database", to: ".pki/nssdb/cert9.db")
        _ = try await Command.run("/usr/bin/certutil", ["-N", "-d", "sql:" + good, "--empty-password"])
        let install = try await Command.rockpool(
            ["ca", "install", "--store", "nss", "--yes", "--config", server.configurationFile], environment: ["HOME": home.path])
        #expect(install.status == 1 && install.errors.contains(broken) && install.errors.contains("1 of 2 stores"), "\(install.errors)")
        #expect(install.output == "now trusted: \(good)\n", "\(install.output)")
    }

    @Test func nothingIsMadeWhereNothingIsDecrypted() async throws {
        let server = try await ServerProcess.start(ServerSettings())
        #expect(Files.mode(of: server.stateDirectory + "/ca/ca.key") == nil)
        try await #expect(Curl.send("GET", "http://\(server.admin)/ca.pem").status == 404)
        try await server.stop()
    }

    @Test(.enabled(if: access("/usr/bin/certutil", X_OK) == 0, "certutil is not installed"))
    func browsersDatabasesAreFoundAndLeftAgain() async throws {
        let server = try ServerProcess.prepare(Self.settings)
        try await #expect(server.command("ca", "init").status == 0)
        let home = try Scratch()
        let database = home.path + "/.pki/nssdb"
        try FileManager.default.createDirectory(atPath: database, withIntermediateDirectories: true)
        _ = try await Command.run("/usr/bin/certutil", ["-N", "-d", "sql:" + database, "--empty-password"])
        func ca(_ words: String...) async throws -> Command {
            try await Command.rockpool(["ca"] + words + ["--config", server.configurationFile], environment: ["HOME": home.path])
        }
        func isTrusted() async throws -> Bool? {
            let stores = try await json(ca("show", "--format", "json"))["stores"]?.array ?? []
            return stores.first { $0["place"]?.string == database }?["trusted"] == true
        }
        try await #expect(isTrusted() == false)
        let unasked = try await ca("install", "--store", "nss")
        #expect(unasked.status == 64 && unasked.errors.contains("--yes"), "\(unasked.errors)")
        for _ in 0..<2 { try await #expect(ca("install", "--store", "nss", "--yes").status == 0) }
        try await #expect(isTrusted() == true)
        try await #expect(ca("rotate").status == 0)
        try await #expect(isTrusted() == false)
        try await #expect(ca("install", "--store", "nss", "--yes").status == 0)
        try await #expect(isTrusted() == true)
        for _ in 0..<2 { try await #expect(ca("uninstall", "--store", "nss", "--yes").status == 0) }
        try await #expect(isTrusted() == false)
    }

    // MARK: env and run

    static let names = [
        "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "SSL_CERT_FILE", "CURL_CA_BUNDLE",
        "REQUESTS_CA_BUNDLE",
        "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE", "DENO_CERT",
    ]

    @Test func theEnvironmentNamesTheRunningServer() async throws {
        let server = try await ServerProcess.start(Self.settings)
        let command = #"eval "$(\#(Binary.path) env --shell sh --config \#(server.configurationFile))"; env"#
        let printed = try await Command.run("/bin/sh", ["-c", command])
        let values = Dictionary(
            printed.output.split(separator: "\n").compactMap { line in
                line.firstIndex(of: "=").map { (String(line[..<$0]), String(line[line.index(after: $0)...])) }
            }, uniquingKeysWith: { $1 })
        #expect(Self.names.filter { values[$0] == nil } == [], "\(printed.errors)")
        #expect(values["https_proxy"] == "http://" + server.proxy && values["no_proxy"] == "")
        let bundle = try Files.text(of: try #require(values["SSL_CERT_FILE"]))
        try #expect(bundle.contains(Files.text(of: server.stateDirectory + "/ca/ca.pem")) && bundle.count > 2000)
        // A second `run` inside the first gives the same values.
        let twice = try await server.command("run", "--config", server.configurationFile, "--", "/bin/sh", "-c", command)
        #expect(twice.output.contains("SSL_CERT_FILE=\(values["SSL_CERT_FILE"] ?? "?")\n"))
        try #expect(Files.text(of: values["SSL_CERT_FILE"] ?? "") == bundle)
        try await server.stop()
    }

    /// Another shell, with another list of authorities, has its own bundle.
    @Test func twoShellsDoNotChangeEachOthersAuthorities() async throws {
        let server = try await ServerProcess.start(Self.settings)
        let mine = try server.scratch.write("# mine\n", to: "mine.pem")
        let words = ["run", "--config", server.configurationFile, "--", "/bin/sh", "-c", "echo $SSL_CERT_FILE; cat $SSL_CERT_FILE"]
        let one = try await Command.rockpool(words, environment: ["SSL_CERT_FILE": ""])
        let other = try await Command.rockpool(words, environment: ["SSL_CERT_FILE": mine])
        let again = try await Command.rockpool(words, environment: ["SSL_CERT_FILE": ""])
        #expect(one.output == again.output && other.output.contains("# mine") && !one.output.contains("# mine"))
        try #expect(other.output.contains(Files.text(of: server.stateDirectory + "/ca/ca.pem")))
        try await server.stop()
    }

    @Test(.enabled(if: access("/usr/bin/keytool", X_OK) == 0, "Java is not installed"))
    func aFailingKeytoolLeavesOutJavaAlone() async throws {
        let server = try await ServerProcess.start(Self.settings)
        let tool = try server.scratch.write("#!/bin/sh\necho no room >&2\nexit 1\n", to: "keytool")
        try Files.setMode(0o755, of: tool)
        let path = ["PATH": server.scratch.path + ":/usr/bin:/bin"]
        let printed = try await Command.rockpool(["env", "--shell", "sh", "--config", server.configurationFile], environment: path)
        #expect(printed.status == 0 && printed.output.contains("SSL_CERT_FILE=") && !printed.output.contains("trustStore"))
        #expect(printed.errors.contains("Java is not set up") && printed.errors.contains("no room"), "\(printed.errors)")
        let run = try await Command.rockpool(["run", "--config", server.configurationFile, "--", "true"], environment: path)
        #expect(run.status == 0, "\(run.errors)")
        try await server.stop()
    }

    @Test(arguments: [["env"], ["run", "--", "true"]]) func aKeyThatOthersCanReadIsABadConfigurationHereToo(words: [String]) async throws {
        let server = try ServerProcess.prepare(Self.settings)
        try await #expect(server.command("ca", "init").status == 0)
        try Files.setMode(0o644, of: server.stateDirectory + "/ca/ca.key")
        let verb = words.prefix(1) + ["--config", server.configurationFile] + words.dropFirst()
        let failure = try await Command.rockpool(Array(verb))
        #expect(failure.status == 78 && failure.errors.contains("chmod 600"), "\(failure.errors)")
    }

    @Test(arguments: [
        ("bash", "export http_proxy='http://"), ("fish", "set -gx http_proxy 'http://"), ("powershell", "$env:http_proxy = 'http://"),
    ])
    func eachShellHasItsWords(shell: String, line: String) async throws {
        let server = try await ServerProcess.start(Self.settings)
        let printed = try await server.command("env", "--shell", shell)
        #expect(printed.output.hasPrefix(line + server.proxy + "'"), "\(printed.output)")
        try await server.stop()
    }

    @Test func noProxyComesFromTheConfigurationAlone() async throws {
        var settings = Self.settings
        settings.proxy = ["no_proxy": ["internal.test", "10.0.0.1"], "listen": "127.0.0.1:7999"]
        let server = try ServerProcess.prepare(settings)
        let printed = try await server.command("env", "--shell", "sh")
        #expect(printed.output.contains("no_proxy='internal.test,10.0.0.1'\n") && printed.output.contains("http://127.0.0.1:7999"))
        #expect(printed.errors.contains("no server is running"))
    }

    @Test(arguments: [("exit 7", Int32(7)), ("kill -TERM $$", 143), ("true", 0)])
    func runEndsAsTheCommandEnds(script: String, status: Int32) async throws {
        let server = try await ServerProcess.start(Self.settings)
        let run = try await Command.rockpool(["run", "--config", server.configurationFile, "--", "/bin/sh", "-c", script])
        #expect(run.status == status, "\(run.errors)")
        let missing = try await Command.rockpool(["run", "--config", server.configurationFile, "--", "no-such-program"])
        #expect(missing.status == 127)
        try await server.stop()
    }

    // MARK: files for browsers and phones

    @Test func theCertificateAndTheScriptNeedNoToken() async throws {
        let server = try await ServerProcess.start(Self.settings)
        let certificate = try await Curl.send("GET", "http://\(server.admin)/ca.pem")
        try #expect(certificate.status == 200 && certificate.text == Files.text(of: server.stateDirectory + "/ca/ca.pem"))
        #expect(!certificate.text.contains("PRIVATE"))
        let script = try await Curl.send("GET", "http://\(server.admin)/proxy.pac")
        #expect(script["content-type"] == "application/x-ns-proxy-autoconfig" && script.text.contains("PROXY \(server.proxy)"))
        try await server.stop()
    }

    @Test(
        .enabled(if: access("/usr/bin/node", X_OK) == 0, "node is not installed"),
        arguments: [
            ("https://api.example.com/", "api.example.com", true), ("https://api.example.com:8443/", "api.example.com", false),
            ("http://api.example.com/", "api.example.com", false), ("https://a.listed.test/", "a.listed.test", true),
            ("https://listed.test/", "listed.test", false), ("https://free.listed.test/", "free.listed.test", false),
            ("https://other.test/", "other.test", false), ("http://plain.test:8080/", "plain.test", true),
            ("wss://api.example.com/", "api.example.com", true),
        ])
    func theScriptSendsWhatWeServe(url: String, host: String, isOurs: Bool) async throws {
        var settings = Self.settings
        settings.proxy = ["intercept": ["*.listed.test"], "no_proxy": ["free.listed.test"]]
        settings.others = [["name": "plain", "origin": "http://plain.test:8080"]]
        let server = try await ServerProcess.start(settings)
        let script = try await Curl.send("GET", "http://\(server.admin)/proxy.pac").text
        let judge =
            "const dnsDomainIs = (host, domain) => host.endsWith(domain);\n\(script)\nconsole.log(FindProxyForURL(...process.argv.slice(1)));"
        let answer = try await Command.run("/usr/bin/node", ["-e", judge, url, host])
        #expect(answer.output == (isOurs ? "PROXY \(server.proxy); DIRECT\n" : "DIRECT\n"), "\(answer.errors)")
        try await server.stop()
    }
}
