// git's own server program behind a small web server, for fetch and push by the smart protocol.
import Foundation
import RockpoolTesting
import Testing

/// A bare repository `pool.git` that is served over HTTP by `git http-backend`.
struct GitServer {
    let port: Int
    let scratch: Scratch
    private let web: ChildProcess

    private static let program =
        URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path + "/programs/git_server.py"

    /// Makes the repository, starts the server and waits for it.
    /// - Parameter format: the function that names its objects.
    static func start(format: String = "sha1") async throws -> GitServer {
        let scratch = try Scratch()
        let port = FreePort.next()
        try await Git.require(["init", "-q", "--bare", "--object-format", format, "-b", "main", "pool.git"], in: scratch.path)
        try await Git.require(["-C", "pool.git", "config", "http.receivepack", "true"], in: scratch.path)
        let web = try await ChildProcess("/usr/bin/env", ["python3", program, "\(port)"], directory: scratch.path)
        try await eventually("a web server") { try await Curl.send("GET", "http://127.0.0.1:\(port)/pool.git/HEAD").status == 200 }
        return GitServer(port: port, scratch: scratch, web: web)
    }

    var url: String { "http://127.0.0.1:\(port)/pool.git" }

    /// The commit that a branch of the server points to; empty without one.
    func head(_ branch: String = "main") async throws -> String {
        let run = try await Git.run(["-C", "pool.git", "rev-parse", "--verify", "-q", branch], in: scratch.path)
        return run.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    func stop() async {
        web.signal(SIGKILL)
        _ = try? await web.ending()
    }
}

/// Runs git with a configuration of its own.
enum Git {
    static func run(
        _ arguments: [String], in directory: String, proxy: String? = nil, environment additional: [String: String] = [:]
    ) async throws -> Command {
        var environment = [
            "HOME": directory, "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com",
            "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com", "GIT_TERMINAL_PROMPT": "0",
        ]
        environment["http_proxy"] = proxy.map { "http://" + $0 }
        environment.merge(additional) { $1 }
        return try await Command.run("/usr/bin/git", arguments, environment: environment, directory: directory)
    }

    /// - Parameter home: the directory of its configuration; nil: the one it runs in.
    static func require(_ arguments: [String], in directory: String, proxy: String? = nil, home: String? = nil) async throws {
        let run = try await run(arguments, in: directory, proxy: proxy, environment: home.map { ["HOME": $0] } ?? [:])
        try #require(run.status == 0, "\(arguments): \(run.errors)")
    }
}
