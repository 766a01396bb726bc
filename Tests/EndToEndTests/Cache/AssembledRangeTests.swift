// Ranges of one resource, read at any time and in any order: each byte is fetched once, and one copy remains (docs/caching.md#ranges).
import Foundation
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(3)), .serialized) struct AssembledRangeTests {
    static let size = 600_000

    /// Freshness as its origin gives it: with `no-cache` every use is confirmed first.
    static let freshness = ["max-age=600", "no-cache"]

    private func read(_ url: String, _ range: Range<Int>, of site: RangeSite) async throws {
        let part = try await Curl.send("GET", url, options: ["-r", "\(range.lowerBound)-\(range.upperBound - 1)"])
        #expect(part.status == 206 && part.body == Array(site.bytes[range]), "\(range): \(part.status), \(part.body.count) bytes")
    }

    private func with(
        _ freshness: String, pause: Duration = .zero, _ body: (RangeSite, ServerProcess, String) async throws -> Void
    ) async throws {
        // Larger than what is fetched whole in the background (4 MiB) is not needed: that fetch takes part, too.
        let site = try await RangeSite.start(bytes: Self.size, freshness: freshness, pause: pause)
        let server = try await ServerProcess.start(ServerSettings(upstream: site.port))
        try await body(site, server, "http://\(server.gateway)/file")
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await site.stop()
    }

    private func isWholeOffline(_ url: String, at server: ServerProcess, _ site: RangeSite) async throws {
        try await eventually("the whole is stored") {
            let stored = try await server.get("/v1/cache").json
            return stored?["items"]?.array?.contains { $0["status"]?.integer == 200 } == true
        }
        _ = try await server.change("PUT", "/v1/network", ["mode": "offline"])
        let whole = try await Curl.send("GET", url)
        #expect(whole.status == 200 && whole.body == site.bytes, "\(whole.status), \(whole.body.count) bytes")
    }

    @Test(arguments: freshness) func overlappingRangesAreFetchedOnce(_ freshness: String) async throws {
        try await with(freshness) { site, server, url in
            for start in stride(from: 0, to: Self.size - 100_000, by: 50_000) {
                try await read(url, start..<start + 150_000, of: site)
            }
            #expect(site.sent == Self.size, "\(site.sent) bytes fetched")
            try await isWholeOffline(url, at: server, site)
        }
    }

    @Test(arguments: freshness) func theWholeIsFetchedAroundAStoredPart(_ freshness: String) async throws {
        try await with(freshness) { site, server, url in
            try await read(url, 200_000..<300_000, of: site)
            let whole = try await Curl.send("GET", url)
            #expect(whole.status == 200 && whole.body == site.bytes)
            #expect(site.sent == Self.size, "\(site.sent) bytes fetched")
            try await isWholeOffline(url, at: server, site)
        }
    }

    /// Also ranges that nothing announces: the first response names the representation.
    @Test(arguments: freshness) func parallelReadersShareWhatTheyFetch(_ freshness: String) async throws {
        try await with(freshness, pause: .milliseconds(20)) { site, server, url in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for reader in 0..<12 {
                    let start = reader % 4 * 100_000
                    group.addTask { try await read(url, start..<start + 200_000, of: site) }
                }
                try await group.waitForAll()
            }
            try await eventually("the rest is fetched in the background") { site.sent >= Self.size }
            #expect(site.sent == Self.size, "\(site.sent) bytes fetched")
            try await isWholeOffline(url, at: server, site)
        }
    }

    /// A download ends where a range begins that is requested meanwhile, and continues behind it.
    @Test func aDownloadUnderWayDoesNotFetchWhatAnotherRequestBrings() async throws {
        try await with("max-age=600", pause: .milliseconds(200)) { site, server, url in
            async let whole = Curl.send("GET", url)
            try await eventually("the download has begun") { site.requests == 1 }
            try await read(url, 400_000..<500_000, of: site)
            let all = try await whole
            #expect(all.status == 200 && all.body == site.bytes, "\(all.status), \(all.body.count) bytes")
            // What was on the way when the download was cut is lost.
            #expect(site.sent < Self.size + 150_000, "\(site.sent) bytes sent")
            try await isWholeOffline(url, at: server, site)
        }
    }

    /// The first request of every player is for all bytes as a range; where it seeks to, it does not wait for what comes before.
    @Test func aPlayerSeeksWhileItsFirstRequestRuns() async throws {
        try await with("max-age=600", pause: .milliseconds(500)) { site, server, url in
            async let first = Curl.send("GET", url, options: ["-r", "0-"])
            try await eventually("the first request has begun") { site.sent >= 50_000 }
            let started = ContinuousClock.now
            try await read(url, 500_000..<550_000, of: site)
            let waited = ContinuousClock.now - started
            #expect(waited < .seconds(3), "\(waited), where the bytes before take 4.5 s")
            let all = try await first
            #expect(all.status == 206 && all.body == site.bytes, "\(all.status), \(all.body.count) bytes")
        }
    }

    /// A signature covers range and condition, so each request is sent as it is; what is stored is confirmed by its tag and not sent again.
    @Test func aSignedClientFetchesEachPartOnce() async throws {
        try await with("no-cache") { site, server, url in
            let signature =
                "AWS4-HMAC-SHA256 Credential=AK/20260101/us-east-1/s3/aws4_request, SignedHeaders=host;if-match;range, Signature=00"
            for round in 0..<2 {
                for start in stride(from: 0, to: Self.size, by: 200_000) {
                    let last = start + 200_000 == Self.size ? "" : String(start + 199_999)
                    let fields = ["Authorization: \(signature)", "If-Match: \"v1\"", "Range: bytes=\(start)-\(last)"]
                    let part = try await Curl.send("GET", url, fields: fields)
                    #expect(part.status == 206 && part.body == Array(site.bytes[start..<start + 200_000]), "\(round): \(part.status)")
                }
                #expect(site.sent == Self.size, "round \(round): \(site.sent) bytes fetched")
            }
            _ = try await server.change("PUT", "/v1/network", ["mode": "offline"])
            let (whole, head) = (
                try await Curl.send("GET", url, fields: ["Authorization: \(signature)"]),
                try await Curl.send("HEAD", url, fields: ["Authorization: \(signature)"])
            )
            #expect(whole.body == site.bytes && head.status == 200, "\(whole.status) \(head.status)")
        }
    }

    /// The head of a part answers HEAD for the whole.
    @Test func aPartIsEnoughForHeadOffline() async throws {
        try await with("max-age=600") { site, server, url in
            try await read(url, 100_000..<200_000, of: site)
            _ = try await server.change("PUT", "/v1/network", ["mode": "offline"])
            let head = try await Curl.send("HEAD", url)
            #expect(head.status == 200 && head["Content-Length"] == "600000", "\(head.status) \(head["Content-Length"] ?? "")")
        }
    }

    /// Bytes of two representations are never mixed.
    @Test func aChangedResourceIsReadAnew() async throws {
        try await with("no-cache") { site, server, url in
            try await read(url, 0..<100_000, of: site)
            site.change()
            let part = try await Curl.send("GET", url, options: ["-r", "50000-249999"])
            #expect(part.status == 206 && part.body == Array(site.bytes[50_000..<250_000]), "\(part.status), \(part.body.count) bytes")
            let whole = try await Curl.send("GET", url)
            #expect(whole.status == 200 && whole.body == site.bytes)
        }
    }

    /// Parts that touch are enough for a range that spans them while the origin is away.
    @Test func aRangeOverTwoPartsIsReadOffline() async throws {
        try await with("max-age=0") { site, server, url in
            let settings: JSONValue = ["mode": "offline"]
            try await read(url, 0..<100_000, of: site)
            try await read(url, 100_000..<200_000, of: site)
            _ = try await server.change("PUT", "/v1/network", settings)
            try await read(url, 50_000..<150_000, of: site)
        }
    }
}

/// An origin with one file that can change, with conditions and ranges.
final class RangeSite: Sendable {
    private final class File: Sendable {
        private struct State {
            var bytes: [UInt8]
            var version = 1
            var sent = 0
            var requests = 0
        }

        private let state: Mutex<State>

        init(bytes: [UInt8]) { state = Mutex(State(bytes: bytes)) }

        var bytes: [UInt8] { state.withLock(\.bytes) }
        var tag: String { state.withLock { "\"v\($0.version)\"" } }
        var sent: Int { state.withLock(\.sent) }
        var requests: Int { state.withLock(\.requests) }

        func send(_ bytes: Int) { state.withLock { $0.sent += bytes } }
        func request() { state.withLock { $0.requests += 1 } }

        func change() {
            state.withLock { state in
                state.bytes = state.bytes.map { $0 &+ 1 }
                state.version += 1
            }
        }

        /// The bytes that a request selects; nil for the whole. Without any, the client's copy is current.
        func selection(of fields: [String: String]) -> Range<Int>? {
            if fields["if-none-match"] == tag { return 0..<0 }
            guard let value = fields["range"], fields["if-range"] ?? tag == tag else { return nil }
            let ends = value.dropFirst(6).split(separator: "-").compactMap { Int($0) }
            return ends.count == 2 ? ends[0]..<min(ends[1] + 1, bytes.count) : ends[0]..<bytes.count
        }
    }

    private let file: File
    private let server: RawServer

    var port: Int { server.port }
    var bytes: [UInt8] { file.bytes }
    /// Number of body bytes sent.
    var sent: Int { file.sent }
    var requests: Int { file.requests }

    private init(_ file: File, _ server: RawServer) { (self.file, self.server) = (file, server) }

    /// - Parameter pause: delay before each 50,000 bytes of a body.
    static func start(bytes count: Int, freshness: String, pause: Duration) async throws -> RangeSite {
        let file = File(bytes: (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) })
        let server = try await RawServer.start { connection in
            while true {
                let head = try await connection.read(through: "\r\n\r\n", within: .seconds(60))
                file.request()
                let lines = head.split(separator: "\r\n").dropFirst().map { $0.split(separator: ": ", maxSplits: 1).map(String.init) }
                let fields = Dictionary(lines.filter { $0.count == 2 }.map { ($0[0].lowercased(), $0[1]) }) { first, _ in first }
                let (bytes, selection) = (file.bytes, file.selection(of: fields))
                let range = selection ?? 0..<bytes.count
                let status = selection == nil ? "200 OK" : range.isEmpty ? "304 Not Modified" : "206 Partial Content"
                var answer = "HTTP/1.1 \(status)\r\nCache-Control: \(freshness)\r\nETag: \(file.tag)\r\n"
                // As nginx: a part says by itself that there are parts.
                if !status.hasPrefix("206") { answer += "Accept-Ranges: bytes\r\n" }
                if !range.isEmpty { answer += "Content-Length: \(range.count)\r\n" }
                if selection != nil, !range.isEmpty {
                    answer += "Content-Range: bytes \(range.lowerBound)-\(range.upperBound - 1)/\(bytes.count)\r\n"
                }
                try await connection.send(answer + "\r\n")
                for start in stride(from: range.lowerBound, to: range.upperBound, by: 50_000) {
                    if pause > .zero { try await Task.sleep(for: pause) }
                    let end = min(start + 50_000, range.upperBound)
                    file.send(end - start)
                    try await connection.send(Array(bytes[start..<end]))
                }
            }
        }
        return RangeSite(file, server)
    }

    /// Replaces the file by another of the same length.
    func change() { file.change() }

    func stop() async { await server.stop() }
}
