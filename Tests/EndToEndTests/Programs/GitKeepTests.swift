// Repositories on a route with `kind: git`: what was fetched is there while the server is away, exactly.
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(4))) struct GitKeepTests {
    private struct World {
        let git: GitServer
        let server: ServerProcess
        let scratch: Scratch
        /// True if clients use a gateway, and no proxy.
        let usesGateway: Bool

        init(_ upstream: JSONValue = [:], format: String = "sha1") async throws {
            git = try await GitServer.start(format: format)
            usesGateway = upstream["gateway"] != nil
            let routes: JSONValue = ["routes": [["match": "/**/pool.git/**", "kind": "git"]]]
            server = try await ServerProcess.start(ServerSettings(upstream: git.port, routes.merging(upstream)))
            scratch = try Scratch()
            try await Git.require(["init", "-q", "--object-format", format, "-b", "main", "author"], in: scratch.path)
            try await Git.require(["remote", "add", "origin", git.url], in: path("author"))
            try await commit("low water")
        }

        func path(_ name: String) -> String { scratch.path + "/" + name }

        /// The author's next commit, sent to the server directly.
        func commit(_ text: String, lines: Int = 400) async throws {
            // Long and alike, so that the server sends differences.
            let words = (0..<lines).map { "\($0) of the tide\n" }.joined()
            try Files.write(Array((words + text).utf8), to: path("author/log.txt"))
            try Files.write(Array(text.utf8), to: path("author/\(text.count).txt"))
            try await Git.require(["add", "."], in: path("author"))
            try await Git.require(["commit", "-qm", text], in: path("author"))
            try await Git.require(["push", "-q", "origin", "HEAD", "--tags"], in: path("author"))
        }

        func run(_ arguments: [String], in name: String = ".", version: String = "2", agent: String = "git/1") async throws -> Command {
            try await Git.run(
                ["-c", "protocol.version=" + version] + arguments, in: path(name), proxy: usesGateway ? nil : server.proxy,
                environment: ["GIT_USER_AGENT": agent, "HOME": scratch.path])
        }

        func require(_ arguments: [String], in name: String = ".", version: String = "2", agent: String = "git/1") async throws {
            let run = try await run(arguments, in: name, version: version, agent: agent)
            try #require(run.status == 0, "\(arguments): \(run.errors)")
        }

        /// The objects of a clone are whole, and its remote is at the author's last commit.
        func expectWhole(_ name: String, at revision: String = "origin/main") async throws {
            try await Git.require(["fsck", "--full", "--strict"], in: path(name))
            let own = try await Git.run(["rev-parse", revision], in: path(name)).output
            try await #expect(own == Git.run(["rev-parse", "main"], in: path("author")).output, "\(name)")
            let objects = try await Git.run(["rev-list", "--objects", revision], in: path(name)).output
            try await #expect(objects == Git.run(["rev-list", "--objects", "main"], in: path("author")).output, "\(name)")
        }

        func stored(_ count: Int) async throws {
            try await eventually("the answers are stored") {
                let items = try await server.get("/v1/cache?prefix=\(git.url)/git-upload-pack").json?["items"]?.array
                return items?.count ?? 0 >= count
            }
        }

        func end() async throws {
            try await #expect(server.operations().isEmpty)
            try await #expect(server.stop() == .exit(0), "\(server.errors)")
            await git.stop()
        }
    }

    /// By any client and in every version of the protocol.
    @Test(arguments: ["sha1", "sha256"]) func whatWasClonedIsThere(format: String) async throws {
        let world = try await World(["policy": "standard"], format: format)
        for version in ["0", "1", "2"] { try await world.require(["clone", "-q", world.git.url, "online" + version], version: version) }
        try await world.stored(4)
        await world.git.stop()
        for version in ["0", "1", "2"] {
            try await world.require(["clone", "--progress", world.git.url, "away" + version], version: version, agent: "jgit/7")
            try await world.expectWhole("away" + version)
            try await world.require(["fetch", "-q"], in: "away" + version, version: version)
        }
        try await world.end()
    }

    /// Later fetches bring differences to what their clients had: for others they are put together with what these build on.
    @Test(arguments: ["0", "2"], ["sha1", "sha256"])
    func whatWasFetchedIsThereForClientsInOtherStates(version: String, format: String) async throws {
        let world = try await World(format: format)
        for name in ["first", "early", "late"] { try await world.require(["clone", "-q", world.git.url, name], version: version) }
        for text in ["high water", "spring tide"] {
            try await world.commit(text)
            try await world.require(["fetch", "-q"], in: "first", version: version)
            if text == "high water" { try await world.require(["fetch", "-q"], in: "late", version: version) }
        }
        try await world.expectWhole("first")
        // In version 2 the list of references has the same URL, and is kept twice.
        try await world.stored(version == "0" ? 3 : 5)
        await world.git.stop()
        try await world.require(["clone", "-q", world.git.url, "away"], version: version)
        try await world.expectWhole("away")
        try await world.expectWhole("away", at: "HEAD")
        for name in ["early", "late"] {
            // What a client has committed itself, the server never saw.
            try Files.write(Array("own".utf8), to: world.path(name + "/own.txt"))
            try await Git.require(["add", "."], in: world.path(name))
            try await Git.require(["commit", "-qm", "own"], in: world.path(name))
            try await world.require(["fetch", "-q"], in: name, version: version)
            try await world.expectWhole(name)
        }
        try await world.end()
    }

    /// Who has pushed, or only lists, sees references whose objects nobody has fetched: away, a clone gets the ones before.
    @Test(arguments: ["0", "2"]) func aListThatNobodyFollowedSpoilsNoClone(version: String) async throws {
        let world = try await World()
        try await world.require(["clone", "-q", world.git.url, "first"], version: version)
        try await world.stored(version == "0" ? 1 : 2)
        let before = try await Git.run(["rev-parse", "main"], in: world.path("author")).output
        for text in ["high water", "spring tide"] {
            try await world.commit(text)
            try await world.require(["ls-remote", "-q", "--heads", "--tags", "origin"], in: "first", version: version)
        }
        await world.git.stop()
        try await world.require(["clone", "-q", world.git.url, "away"], version: version)
        try await Git.require(["fsck", "--full", "--strict"], in: world.path("away"))
        try await #expect(Git.run(["rev-parse", "HEAD"], in: world.path("away")).output == before)
        try await world.end()
    }

    /// A reference to an old commit, of which no client had to ask for anything, holds back no other.
    @Test(arguments: ["0", "2"]) func whatWasFetchedIsNewBesideWhatWasNot(version: String) async throws {
        let world = try await World()
        for text in ["high water", "spring tide"] { try await world.commit(text) }
        try await world.require(["clone", "-q", world.git.url, "first"], version: version)
        try await Git.require(["branch", "old", "HEAD~1"], in: world.path("author"))
        try await Git.require(["push", "-q", "origin", "old"], in: world.path("author"))
        try await world.commit("storm")
        try await world.require(["fetch", "-q"], in: "first", version: version)
        try await world.expectWhole("first")
        try await world.stored(version == "0" ? 2 : 4)
        await world.git.stop()
        try await world.require(["clone", "-q", world.git.url, "away"], version: version)
        try await world.expectWhole("away")
        try await world.require(["fetch", "-q"], in: "first", version: version)
        try await world.expectWhole("first")
        try await world.end()
    }

    /// What one client fetched with its password is there for this client alone. The server's challenge is kept, so that it can begin.
    @Test func whatOneClientMayReadIsThereForItAlone() async throws {
        let world = try await World()
        let closed = { (user: String) in "http://\(user)127.0.0.1:\(world.git.port)/closed/pool.git" }
        try await world.require(["clone", "-q", closed("ann:secret@"), "online"])
        try await eventually("the answers are stored") {
            let items = try await world.server.get("/v1/cache?prefix=\(closed(""))/git-upload-pack").json?["items"]?.array
            return items?.count ?? 0 >= 2
        }
        await world.git.stop()
        try await world.require(["clone", "-q", closed("ann:secret@"), "away"])
        try await world.expectWhole("away")
        for other in ["bob:secret@", "ann:wrong@", ""] {
            let run = try await world.run(["clone", "-q", closed(other), "other"])
            #expect(run.status != 0, "\(other)")
        }
        try await world.end()
    }

    /// References above a kilobyte make git compress its question.
    @Test func manyReferencesAreThere() async throws {
        let world = try await World()
        for number in 0..<60 { try await Git.require(["commit", "-q", "--allow-empty", "-m", "\(number)"], in: world.path("author")) }
        let commits = try await Git.run(["rev-list", "main"], in: world.path("author")).output.split(separator: "\n").map(String.init)
        for (number, commit) in commits.prefix(50).enumerated() {
            try await Git.require(["branch", "b\(number)", commit], in: world.path("author"))
        }
        try await Git.require(["push", "-q", "--all", "origin"], in: world.path("author"))
        try await world.require(["clone", "-q", world.git.url, "online"])
        try await world.stored(2)
        await world.git.stop()
        try await world.require(["clone", "-q", world.git.url, "away"], agent: "git/3")
        try await world.expectWhole("away")
        try await world.end()
    }

    @Test func shallowAndPartialClonesAreThere() async throws {
        let world = try await World()
        try await Git.require(["config", "uploadpack.allowFilter", "true"], in: world.git.scratch.path + "/pool.git")
        try await Git.require(["config", "uploadpack.allowAnySHA1InWant", "true"], in: world.git.scratch.path + "/pool.git")
        try await world.commit("high water")
        let kinds = [("shallow", ["--depth", "1"]), ("partial", ["--filter=blob:none"]), ("treeless", ["--filter=tree:0"])]
        for (name, options) in kinds { try await world.require(["clone", "-q"] + options + [world.git.url, name]) }
        try await world.require(["fetch", "-q", "--unshallow"], in: "shallow")
        try await world.stored(5)
        await world.git.stop()
        for (name, options) in kinds {
            try await world.require(["clone", "-q"] + options + [world.git.url, name + "-away"])
            try await Git.require(["fsck"], in: world.path(name + "-away"))
            let text = try Files.text(of: world.path(name + "-away/log.txt"))
            #expect(text.hasSuffix("high water"))
        }
        try await world.require(["fetch", "-q", "--unshallow"], in: "shallow-away")
        try await world.expectWhole("shallow-away")
        try await world.end()
    }

    /// Git LFS asks where its files are, and gets them from there; both answers are kept, although the addresses end soon.
    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/git-lfs"), "git-lfs is not installed"))
    func largeFilesAreThere() async throws {
        // git-lfs reaches loopback addresses without a proxy.
        let port = FreePort.next()
        let world = try await World(["gateway": ["listen": .string("127.0.0.1:\(port)"), "rewrite_bodies": ["json-urls"]]])
        let url = "http://127.0.0.1:\(port)/pool.git"
        let large = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        try await Git.require(["lfs", "install"], in: world.path("author"), home: world.scratch.path)
        try await Git.require(["lfs", "track", "*.bin"], in: world.path("author"), home: world.scratch.path)
        try Files.write(large, to: world.path("author/chart.bin"))
        try await Git.require(["add", ".", ".gitattributes"], in: world.path("author"), home: world.scratch.path)
        try await Git.require(["commit", "-qm", "a chart"], in: world.path("author"), home: world.scratch.path)
        try await Git.require(["push", "-q", "origin", "main"], in: world.path("author"), home: world.scratch.path)
        try await world.require(["clone", "-q", url, "online"])
        #expect(try Files.bytes(of: world.path("online/chart.bin")) == large)
        let later: [UInt8] = large.reversed() + [7]
        try Files.write(later, to: world.path("author/later.bin"))
        try await Git.require(["add", "."], in: world.path("author"), home: world.scratch.path)
        try await Git.require(["commit", "-qm", "a later chart"], in: world.path("author"), home: world.scratch.path)
        try await Git.require(["push", "-q", "origin", "main"], in: world.path("author"), home: world.scratch.path)
        try await world.require(["pull", "-q"], in: "online")
        try await eventually("the files are stored") {
            let items = try await world.server.get("/v1/cache?prefix=\(world.git.url)/info/lfs").json?["items"]?.array
            return items?.count ?? 0 >= 4
        }
        await world.git.stop()
        try await Task.sleep(for: .milliseconds(3500))
        try await world.require(["clone", "-q", url, "away"])
        // It asks for both files at once, which nobody has.
        #expect(try Files.bytes(of: world.path("away/chart.bin")) == large)
        #expect(try Files.bytes(of: world.path("away/later.bin")) == later)
        try await world.require(["lfs", "pull"], in: "away")
        try Files.write(large + [1], to: world.path("away/other.bin"))
        try await world.require(["add", "."], in: "away")
        try await world.require(["commit", "-qm", "another"], in: "away")
        let push = try await world.run(["lfs", "push", "origin", "main"], in: "away")
        #expect(push.status != 0 && push.errors.contains("cannot be reached"), "\(push.errors) \(push.output)")
        try await world.end()
    }

    /// With the reason, which git shows; nothing is queued.
    @Test func whatCannotBeDoneIsRefusedAtOnce() async throws {
        let world = try await World()
        try await world.require(["clone", "-q", world.git.url, "work"])
        try await world.stored(2)
        try await world.commit("high water")
        await world.git.stop()
        try Files.write(Array("own".utf8), to: world.path("work/own.txt"))
        try await Git.require(["add", "."], in: world.path("work"))
        try await Git.require(["commit", "-qm", "own"], in: world.path("work"))
        let start = ContinuousClock.now
        let push = try await world.run(["push", "-q", "origin", "main"], in: "work")
        #expect(push.status != 0 && push.errors.contains("nothing was pushed") && .now - start < .seconds(5), "\(push.errors)")
        let other = try await world.run(["ls-remote", world.git.url.replacing("pool.git", with: "pool.git/other.git")])
        #expect(other.status != 0 && other.errors.contains("cannot be reached"), "\(other.errors)")
        let depth = try await world.run(["clone", "-q", "--depth", "1", world.git.url, "shallow"])
        #expect(depth.status != 0 && depth.errors.contains("was not fetched before"), "\(depth.errors)")
        try await world.require(["fetch", "-q"], in: "work")
        try await world.end()
    }
}
