// git fetches and pushes through the proxy; while the server is away it fails at once, and nothing happens behind its user's back.
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(3))) struct GitProgramTests {
    private func commit(_ text: String, in work: String) async throws {
        try Files.write(Array(text.utf8), to: work + "/log.txt")
        try await Git.require(["add", "."], in: work)
        try await Git.require(["commit", "-qm", text], in: work)
    }

    @Test func whatFailedWhileAwayIsNeverDeliveredLater() async throws {
        let git = try await GitServer.start()
        let server = try await ServerProcess.start(ServerSettings(upstream: git.port))
        let scratch = try Scratch()
        let work = scratch.path + "/work"
        try await Git.require(["clone", "-q", git.url, "work"], in: scratch.path, proxy: server.proxy)
        try await Git.require(["checkout", "-qb", "main"], in: work)
        try await commit("low water", in: work)
        try await Git.require(["push", "-q", "origin", "main"], in: work, proxy: server.proxy)
        let first = try await git.head()
        #expect(!first.isEmpty)

        try await commit("a mistake", in: work)
        _ = try await server.change("PUT", "/v1/network", ["mode": "offline"])
        for arguments in [["push", "-q", "origin", "main"], ["fetch", "-q"], ["ls-remote", "origin"]] {
            let run = try await Git.run(arguments, in: work, proxy: server.proxy)
            #expect(run.status != 0, "\(arguments) succeeds while the server is away")
        }
        try await #expect(server.operations().isEmpty)
        // The user takes the commit back; the push that failed must not bring it to the server.
        try await Git.require(["reset", "-q", "--hard", "HEAD~1"], in: work)
        try await commit("high water", in: work)
        _ = try await server.change("PUT", "/v1/network", ["mode": "auto"])
        try await Git.require(["fetch", "-q"], in: work, proxy: server.proxy)
        try await #expect(git.head() == first)
        try await Git.require(["push", "-q", "origin", "main"], in: work, proxy: server.proxy)
        let log = try await Git.run(["-C", "pool.git", "log", "--format=%s", "main"], in: git.scratch.path)
        #expect(log.output == "high water\nlow water\n")
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await git.stop()
    }

    /// Where the route says `cache: body`, what was cloned is there while the server is away, in both versions of the protocol; a push still
    /// fails at once, and none is queued.
    @Test func whatWasClonedIsThereWhileAway() async throws {
        let git = try await GitServer.start()
        let routes: JSONValue = ["routes": [["match": "/pool.git/**", "cache": "body"]]]
        let server = try await ServerProcess.start(ServerSettings(upstream: git.port, routes))
        let scratch = try Scratch()
        try await Git.require(["clone", "-q", git.url, "work"], in: scratch.path, proxy: server.proxy)
        try await Git.require(["checkout", "-qb", "main"], in: scratch.path + "/work")
        try await commit("low water", in: scratch.path + "/work")
        try await Git.require(["push", "-q", "origin", "main"], in: scratch.path + "/work", proxy: server.proxy)
        let versions = ["0", "1", "2"]
        let clone = { (version: String, name: String) in
            try await Git.run(["-c", "protocol.version=" + version, "clone", "-q", git.url, name], in: scratch.path, proxy: server.proxy)
        }
        for version in versions { try await #expect(clone(version, "online" + version).status == 0) }
        try await Git.require(["fetch", "-q"], in: scratch.path + "/online2", proxy: server.proxy)
        try await eventually("the fetches are stored") {
            let prefix = "/v1/cache?prefix=\(git.url)/git-upload-pack"
            return try await server.get(prefix).json?["items"]?.array?.count ?? 0 >= 5
        }
        await git.stop()
        for version in versions {
            let run = try await clone(version, "away" + version)
            #expect(run.status == 0, "protocol \(version): \(run.errors)")
            let log = try await Git.run(["-C", "away" + version, "log", "--format=%s"], in: scratch.path)
            #expect(log.output == "low water\n")
        }
        try await Git.require(["fetch", "-q"], in: scratch.path + "/away2", proxy: server.proxy)
        try await commit("high water", in: scratch.path + "/away2")
        let push = try await Git.run(["push", "-q", "origin", "main"], in: scratch.path + "/away2", proxy: server.proxy)
        #expect(push.status != 0)
        let refs = try await Curl.send("GET", git.url + "/info/refs?service=git-receive-pack", proxy: server.proxy)
        #expect(refs.status == 504)
        try await #expect(server.operations().isEmpty)
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }

    /// The POST is refused with the reason, if a program sends it although the list of references was refused.
    @Test func anExchangeIsRefusedAtOnce() async throws {
        let git = try await GitServer.start()
        let server = try await ServerProcess.start(ServerSettings(upstream: git.port))
        await git.stop()
        let reply = try await Curl.send(
            "POST", git.url + "/git-receive-pack", proxy: server.proxy, fields: ["Content-Type: application/x-git-receive-pack-request"],
            body: "0000")
        expectProblem(reply, "not-queueable", 503)
        #expect(reply.json?["detail"]?.string?.contains("queue: always") == true, "\(reply.text)")
        try await #expect(server.operations().isEmpty)
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }
}
