// The variables of `rockpool env`: what the user had set is kept, and taken back by `--unset`.
import Foundation
import RockpoolCore
import RockpoolNetwork
import Testing

@testable import rockpool

@Suite struct ClientEnvironmentTests {
    private func environment(_ change: (inout ClientEnvironment) -> Void = { _ in }) throws -> [String: String] {
        var client = ClientEnvironment(
            proxy: try #require(HostAndPort("127.0.0.1:7625")), bundle: "/b.pem", wgetrc: nil, javaTrust: nil, direct: ["a.test"],
            javaOptions: nil)
        change(&client)
        return Dictionary(client.variables.map { ($0.name, $0.value) }) { $1 }
    }

    @Test func exceptionsOfTheUserAreKept() throws {
        let variables = try environment { $0.ownExceptions = ["b.test", "a.test", ".c.test", "b.test"] }
        #expect(variables["no_proxy"] == "a.test,b.test,.c.test" && variables["NO_PROXY"] == variables["no_proxy"])
        #expect(try environment()["no_proxy"] == "a.test")
    }

    @Test func javaGetsTheProxyWithoutAKeyStoreToo() throws {
        let variables = try environment {
            ($0.hasJava, $0.javaOptions, $0.ownExceptions) = (true, "-Xmx1g -Dhttp.proxyHost=other", [".c.test"])
        }
        let options = try #require(variables["JAVA_TOOL_OPTIONS"])
        #expect(options.hasPrefix("-Xmx1g -Dhttp.proxyHost=127.0.0.1 ") && !options.contains("trustStore"))
        #expect(options.contains("-Dhttp.nonProxyHosts=a.test|*.c.test"))
    }

    @Test func theAgentOfNodeIsAddedOnce() throws {
        let first = try environment { ($0.nodeAgent, $0.nodeOptions) = ("/x y/a.cjs", "--no-warnings") }["NODE_OPTIONS"]
        #expect(first == #"--no-warnings --require="/x y/a.cjs""#)
        #expect(try environment { ($0.nodeAgent, $0.nodeOptions) = ("/x y/a.cjs", first) }["NODE_OPTIONS"] == first)
    }

    @Test func theDirectoryOfPHPIsAddedOnce() throws {
        let first = try environment { $0.phpDirectory = "/x/php" }["PHP_INI_SCAN_DIR"]
        #expect(first == ":/x/php")
        #expect(try environment { ($0.phpDirectory, $0.phpDirectories) = ("/x/php", first) }["PHP_INI_SCAN_DIR"] == first)
    }

    @Test func everyNameCanBeTakenBack() throws {
        let all = try environment {
            ($0.wgetrc, $0.aptConfig, $0.nodeAgent, $0.hasJava, $0.phpDirectory) = ("/w", "/apt", "/n", true, "/none/ca/php")
            $0.phpDirectories = "/mine"
        }
        #expect(Set(all.keys) == Set(ClientEnvironment.names))
        let trust = TrustFiles(authority: AuthorityFiles(stateDirectory: "/none"), environment: all)
        var present = all
        present["NODE_OPTIONS"] = "--no-warnings " + NodeAgent.option(trust.nodeAgentPath)
        present["JAVA_TOOL_OPTIONS"] = "-Xmx1g " + (all["JAVA_TOOL_OPTIONS"] ?? "")
        present["NO_PROXY"] = "a.test,b.test"
        let undone = ClientEnvironment.undone(present, trust, direct: ["a.test"])
        let kept = undone.filter { $0.value != nil }.map { "\($0.name)=\($0.value ?? "")" }
        #expect(undone.count == ClientEnvironment.names.count)
        #expect(
            kept.sorted() == [
                "APT_CONFIG=/apt", "JAVA_TOOL_OPTIONS=-Xmx1g", "NODE_OPTIONS=--no-warnings", "NO_PROXY=b.test", "PHP_INI_SCAN_DIR=/mine",
                "SSL_CERT_FILE=/b.pem", "WGETRC=/w",
            ])
    }

    @Test(arguments: [
        ("*", true), ("api.test", true), (".test", true), ("*.api.test", true), ("api.test:80", true), ("api.test:81", false),
        ("pi.test", false), ("", false),
    ])
    func anExceptionThatCoversAnUpstreamIsSeen(_ entry: String, _ covers: Bool) {
        #expect(ClientEnvironment.names(entry, OriginAddress(scheme: .http, host: "api.test")) == covers)
    }

    @Test func aptGetsProxyAndAuthoritiesBesideTheUsersSettings() throws {
        let path = FileManager.default.temporaryDirectory.path + "/rpt-apt-\(UUID().uuidString.prefix(8))"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: path) }
        try "APT::Get::Quiet 1;".write(toFile: path + "/mine.conf", atomically: true, encoding: .utf8)
        let trust = TrustFiles(authority: AuthorityFiles(stateDirectory: path), environment: ["APT_CONFIG": path + "/mine.conf"])
        let file = try trust.writeApt(proxy: "http://127.0.0.1:1", bundle: nil)
        let text = try String(contentsOfFile: file, encoding: .utf8)
        #expect(text.contains("APT::Get::Quiet 1;\nAcquire::http::Proxy \"http://127.0.0.1:1\";\n"))
    }
}
