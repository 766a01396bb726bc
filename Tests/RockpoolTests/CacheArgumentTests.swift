// Arguments of `rockpool cache`, and the admin API calls made for them (docs/reference/cli.md#cache).
import ArgumentParser
import Foundation
import RockpoolCore
import Synchronization
import Testing

@testable import rockpool

@Suite struct CacheArgumentTests {
    static let usageErrors: [([String], String)] = [
        (["purge"], "give URLs, or at least one of"), (["purge", "--glob", "*"], "--glob is the beginning"),
        (["purge", "--category", "x", "--older-than", "soon"], "older-than"),
        (["purge", "--group", ""], "an empty selector would select everything"),
        (["purge", "--prefix", "a.test"], "--prefix is the beginning"),
        (["purge", "a.test"], "the target is neither a path nor an absolute URI"), (["show", "/x"], "not an absolute http or https URL"),
        (["show", "http://a.test/#x"], "a fragment"), (["show"], "Missing expected argument"),
        (["prefetch"], "give URLs, or a file of URLs"),
        (["prefetch", "http://a.test/", "--header", "x"], "a header is written Name: value"),
        (["explain", "http://a.test/", "--header", "A b: c"], "a header is written Name: value"),
        (["explain", "http://a.test/", "--header", "A: b\nc"], "a header is written Name: value"),
        (["ls", "--limit", "0"], "--limit is a number from 1 to 1000"), (["ls", "--limit", "1001"], "--limit is a number"),
        (["export"], "Missing expected argument"), (["import"], "Missing expected argument"), (["pin"], "Missing expected argument"),
    ]

    @Test(arguments: usageErrors) func `Bad usage is said before anybody is asked`(arguments: [String], message: String) async {
        let error = await #expect(throws: (any Error).self) { try await CacheCommand.asyncParseAsRoot(arguments) }
        #expect(error.map { CacheCommand.fullMessage(for: $0) }?.contains(message) == true)
        #expect(error.map { CacheCommand.exitCode(for: $0).rawValue } == ExitStatus.usage.rawValue)
    }

    static let purges: [([String], [String])] = [
        (["http://A.test:80/x?y=1"], ["/v1/cache?url=http%3A%2F%2Fa.test%2Fx%3Fy%3D1"]),
        (["http://a.test/", "http://b.test"], ["/v1/cache?url=http%3A%2F%2Fa.test%2F&url=http%3A%2F%2Fb.test%2F"]),
        (["--prefix", "http://a.test/", "--dry-run"], ["/v1/cache?dryRun=true&prefix=http%3A%2F%2Fa.test%2F"]),
        (["--group", "a&b"], ["/v1/cache?group=a%26b"]), (["--category", "assets"], ["/v1/cache?category=assets"]),
        (["--upstream", "notes"], ["/v1/cache?upstream=notes"]), (["--older-than", "1d"], ["/v1/cache?olderThanSeconds=86400"]),
        (
            ["http://a.test/", "--glob", "http://a.test/*", "--group", "x", "--group", "y"],
            ["/v1/cache?glob=http%3A%2F%2Fa.test%2F%2A&group=x&group=y&url=http%3A%2F%2Fa.test%2F"]
        ),
    ]

    @Test(arguments: purges) func `A purge becomes one call`(arguments: [String], targets: [String]) async throws {
        let calls = try await #require(CacheCommand.asyncParseAsRoot(["purge"] + arguments) as? CacheCommand.Purge).calls
        #expect(calls.map(\.target) == targets && calls.allSatisfy { $0.method == "DELETE" })
    }

    @Test func `Many URLs become several calls, none too long for a head`() async throws {
        let urls = (0..<1000).map { "http://a.test/\($0)/" + String(repeating: "x", count: 100) }
        let calls = try await #require(CacheCommand.asyncParseAsRoot(["purge", "--dry-run"] + urls) as? CacheCommand.Purge).calls
        #expect(calls.flatMap { $0.lists["url"] ?? [] } == urls && calls.count > 1)
        #expect(calls.allSatisfy { $0.target.utf8.count < 8400 && $0.query == ["dryRun": "true"] })
    }

    @Test func `A file of URLs`() throws {
        let text = "# mine\nhttp://a.test/x\n\n  https://B.test:443/y \r\n#http://no\n"
        #expect(try URLList.parse(text, named: "f").map(\.text) == ["http://a.test/x", "https://b.test/y"])
        #expect(try URLList.parse("", named: "f").isEmpty)
        #expect(throws: CommandFailure(.usage, "f:2: the target's scheme is neither http nor https")) {
            try URLList.parse("http://a.test/\nftp://a.test/", named: "f")
        }
    }

    @Test func `Sums of batches`() {
        let sum = PurgeReport(dryRun: true, entries: 1, bytes: 10) + PurgeReport(dryRun: true, entries: 2, bytes: 5)
        #expect(sum == PurgeReport(dryRun: true, entries: 3, bytes: 15))
        #expect(sum.tables.first?.lines(on: Display(width: nil, hasColour: false)) == ["would remove  3 entries, 15 B"])
    }
}

@Suite struct BundleTransferTests {
    @Test func `A body goes out in chunks and a report comes back`() async throws {
        let left = Left(["pearl", "oyster"])
        let request = try await SocketServer.with(answers: ["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"]) { server in
            let transfer = AdminTransfer(source: { room in
                let next = left.next()
                room.copyBytes(from: next.utf8)
                return next.utf8.count
            })
            let reply = try await AdminClient(stateDirectory: server.directory.path).send(.post("/v1/cache/import"), through: transfer)
            #expect(reply.body == Data("{}".utf8))
            return server.requests().first ?? ""
        }
        #expect(request.hasPrefix("POST /v1/cache/import HTTP/1.1\r\n") && request.contains("\r\nTransfer-Encoding: chunked\r\n"))
        #expect(request.contains("\r\n5\r\npearl\r\n") && request.hasSuffix("\r\n0\r\n\r\n"))
    }

    private final class Left: Sendable {
        private let texts: Mutex<[String]>
        init(_ texts: [String]) { self.texts = Mutex(texts) }
        func next() -> String { texts.withLock { $0.isEmpty ? "" : $0.removeFirst() } }
    }

    /// A complete bundle with one response.
    private static let bundle = """
        WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Date: 2026-01-01T00:00:00Z\r\nContent-Length: 1\r\n\r\nx\r\n\r\n
        """

    private func export(answering answer: String, to path: String) async throws -> String {
        try await SocketServer.with(answers: [answer]) { server in
            let target = try BundleFile(writing: path, replacing: true)
            do {
                let transfer = AdminTransfer(sink: target.write)
                _ = try await AdminClient(stateDirectory: server.directory.path).send(.get("/v1/cache/export"), through: transfer)
                try target.finish()
            } catch {
                target.discard()
                throw error
            }
            return target.written
        }
    }

    @Test func `A file is whole or not there, and an older one stays`() async throws {
        let directory = try SocketServer.abandoned(leavingSocket: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let path = directory.path + "/out.warc"
        try Data("before".utf8).write(to: URL(fileURLWithPath: path))
        let head = "HTTP/1.1 200 OK\r\nContent-Length: "
        let bad = [
            head + "999\r\n\r\n" + Self.bundle, head + "5\r\n\r\nWARC/", head + "7\r\n\r\nno WARC",
            "HTTP/1.1 404 No\r\nContent-Length: \(Self.bundle.utf8.count)\r\n\r\n" + Self.bundle,
        ]
        for answer in bad {
            await #expect(throws: (any Error).self) { try await export(answering: answer, to: path) }
            #expect(try String(contentsOfFile: path, encoding: .utf8) == "before")
        }
        let answer = head + "\(Self.bundle.utf8.count)\r\n\r\n" + Self.bundle
        #expect(try await export(answering: answer, to: path) == "1 entry, \(Self.bundle.utf8.count) B")
        #expect(try String(contentsOfFile: path, encoding: .utf8) == Self.bundle)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted() == ["admin.sock", "out.warc"])
    }

    @Test func `A directory that is not there is said`() {
        #expect(throws: CommandFailure.self) { try BundleFile(writing: "/nowhere/out.warc") }
    }
}
