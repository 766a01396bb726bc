// `git clone` over dumb HTTP: about twenty reads of a client without any knowledge of caches, online and then offline.
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct GitTests {
    /// Runs git with the test's configuration only, and requires that it succeeds.
    private func git(_ arguments: [String], in directory: String, proxy: String? = nil) async throws {
        var environment = [
            "HOME": directory, "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com",
            "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com", "GIT_TERMINAL_PROMPT": "0",
        ]
        environment["http_proxy"] = proxy.map { "http://" + $0 }
        let run = try await Command.run("/usr/bin/git", arguments, environment: environment, directory: directory)
        try #require(run.status == 0, "\(arguments): \(run.errors)")
    }

    /// Creates a bare repository with one commit that a static web server can serve.
    private func makeRepository(in directory: String) async throws {
        try await git(["init", "-q", "work"], in: directory)
        try Files.write(Array("low water\n".utf8), to: directory + "/work/log.txt")
        try await git(["-C", "work", "add", "."], in: directory)
        try await git(["-C", "work", "commit", "-qm", "tide"], in: directory)
        try await git(["clone", "-q", "--bare", "work", "pool.git"], in: directory)
        try await git(["-C", "pool.git", "update-server-info"], in: directory)
    }

    @Test func aCloneIsRepeatedFromTheCache() async throws {
        let scratch = try Scratch()
        try await makeRepository(in: scratch.path)
        let port = FreePort.next()
        let web = try await ChildProcess(
            "/usr/bin/env", ["python3", "-m", "http.server", "--bind", "127.0.0.1", "\(port)"], directory: scratch.path)
        try await eventually("a web server") { try await Curl.send("HEAD", "http://127.0.0.1:\(port)/").status == 200 }
        let server = try await ServerProcess.start(ServerSettings(upstream: port))
        let url = "http://127.0.0.1:\(port)/pool.git"
        try await git(["clone", url, "online"], in: scratch.path, proxy: server.proxy)
        web.signal(SIGKILL)
        _ = try await web.ending()
        try await git(["clone", url, "offline"], in: scratch.path, proxy: server.proxy)
        try #expect(Files.text(of: scratch.path + "/offline/log.txt") == "low water\n")
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }
}
