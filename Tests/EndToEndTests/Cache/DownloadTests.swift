// Byte-exact bodies under all behaviours of readers and upstream: aborted and resumed, in parts, broken off (RFC 9112 §6.3, §8).
import Foundation
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(3)), .serialized) struct DownloadTests {
    private static let log: JSONValue = ["access": "json"]

    private func settings(_ port: Int) -> ServerSettings {
        var settings = ServerSettings(upstream: port)
        settings.log = Self.log
        return settings
    }

    /// Returns the lines of the access log so far.
    private func lines(of server: ServerProcess) -> [JSONValue] {
        server.output.split(separator: "\n").compactMap { try? JSONValue.parse(Array($0.utf8)) }
    }

    // MARK: bodies that break off

    enum Cut: String, CaseIterable {
        case chunked, length, untilClose, events

        var head: String {
            switch self {
            case .chunked: "Transfer-Encoding: chunked\r\nContent-Type: text/plain\r\n\r\n5\r\nhello\r\n"
            case .length: "Content-Length: 10\r\nContent-Type: text/plain\r\n\r\nhello"
            case .untilClose: "Content-Type: text/plain\r\n\r\nhello"
            case .events: "Transfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n9\r\ndata: x\n\n\r\n"
            }
        }
    }

    /// A body that the upstream broke off is broken off towards the client and logged as such; the received part is never served as
    /// complete.
    @Test(arguments: Cut.allCases, ["--http1.1", "--http1.0"])
    func whatBreaksOffIsBrokenOff(_ cut: Cut, _ version: String) async throws {
        let origin = try await RawServer.start { connection in
            _ = try await connection.read(through: "\r\n\r\n")
            try await connection.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n" + cut.head)
            try await Task.sleep(for: .milliseconds(200))
            // A body without a length ends with the connection: only a reset shows that it is incomplete.
            if cut == .untilClose { try await connection.reset() }
        }
        let server = try await ServerProcess.start(settings(origin.port))
        for _ in 0..<2 {
            let reply = try await Curl.send("GET", "http://\(server.gateway)/a", options: [version])
            #expect(reply.status == 200 && reply.exit != 0, "\(reply.exit) \(reply.text)")
        }
        try await eventually("two lines are written") { lines(of: server).count == 2 }
        for line in lines(of: server) {
            #expect(line["error"]?.string == "http_response_incomplete" && line["bytes"]?.integer == (cut == .events ? 9 : 5), "\(line)")
        }
        try await server.stop()
        await origin.stop()
    }

    // MARK: bodies that a client leaves

    @Test func theLogTellsWhatAClientThatLeftHasTaken() async throws {
        let site = try await FileSite.start(bytes: 20_000_000)
        let server = try await ServerProcess.start(settings(site.port))
        let url = "http://\(server.gateway)/file"
        // First from the upstream, then from the cache.
        for isStored in [false, true] {
            if isStored { #expect(try await Curl.send("GET", url).body == site.bytes) }
            let before = lines(of: server).count
            let client = try await RawConnection.open(server.gateway, isSlow: true)
            try await client.send("GET /file HTTP/1.1\r\nHost: \(server.gateway)\r\n\r\n")
            #expect(try await client.take() ?? 0 > 0)
            await client.close()
            try await eventually("the exchange is logged") { lines(of: server).count > before }
            let line = try #require(lines(of: server).last)
            #expect(line["error"]?.string == "client_left", "\(line)")
            #expect(line["bytes"]?.integer.map { $0 < 20_000_000 } == true && line["status"]?.integer == 200, "\(line)")
        }
        try await server.stop()
        await site.stop()
    }

    /// `on_abort` decides whether the rest of a body is fetched for the copy: here of a large one, of which little was read.
    @Test(arguments: [("always", true), ("never", false)]) func theConfigurationSaysWhatBecomesOfAFetchWithoutAClient(
        _ rule: String, _ isFinished: Bool
    ) async throws {
        let site = try await FileSite.start(bytes: 4_000_000, pause: .milliseconds(5))
        let server = try await ServerProcess.start(
            ServerSettings(upstream: site.port, ["routes": [["match": "/file", "on_abort": .string(rule)]]]))
        let url = "http://\(server.gateway)/file"
        let left = try await Curl.send("GET", url, options: ["--limit-rate", "500K", "--max-time", "0.2"])
        #expect(left.exit != 0 && left.body.count < site.bytes.count)
        if isFinished {
            try await eventually("the whole is stored") {
                try await Curl.send("GET", url, fields: ["Cache-Control: only-if-cached"]).body == site.bytes
            }
            #expect(site.sent == site.bytes.count)
        } else {
            // The transfer would have ended by now.
            try await Task.sleep(for: .seconds(1))
            #expect(try await Curl.send("GET", url, fields: ["Cache-Control: only-if-cached"]).status == 504)
        }
        try await server.stop()
        await site.stop()
    }

    // MARK: parts

    /// Aborted three times, then requested completely: a regression test for a chunk that was once duplicated at the seam.
    @Test func aDownloadGivenUpAndResumedIsWholeAndRight() async throws {
        let site = try await FileSite.start(bytes: 8_000_000)
        let server = try await ServerProcess.start(settings(site.port))
        for round in 0..<20 {
            let url = "http://\(server.gateway)/file?\(round)"
            for _ in 0..<3 { _ = try await Curl.send("GET", url, options: ["--limit-rate", "20M", "--max-time", "0.1"]) }
            let whole = try await Curl.send("GET", url)
            #expect(whole.exit == 0 && whole.body == site.bytes, "round \(round): \(whole.body.count) bytes")
            #expect(try await Curl.send("GET", url, fields: ["Cache-Control: only-if-cached"]).body == site.bytes)
        }
        try await server.stop()
        await site.stop()
    }

    /// The matrix of clients, sizes, framings, readers and listeners, for forty seconds (`Tests/faults/run whole` takes five).
    @Test func everyBodyIsWholeWhateverTheReadersDo() async throws {
        let script = URL(filePath: #filePath).appending(path: "../../../faults/run").standardized.path
        let run = try await Command.run(
            "/usr/bin/env", ["python3", script, "whole"], environment: ["WHOLE_SECONDS": "40", "ROCKPOOL_BINARY": Binary.path],
            within: .seconds(170))
        #expect(run.status == 0, "\(run.output) \(run.errors)")
        print(run.output)
    }

    /// Eight readers read scattered parts in parallel: each byte is fetched about once, and a complete copy is stored.
    @Test func whatIsReadInPartsIsLeftAsOneWhole() async throws {
        let site = try await FileSite.start(bytes: 8_000_000)
        let server = try await ServerProcess.start(settings(site.port))
        let url = "http://\(server.gateway)/file"
        let step = 500_000
        let places = stride(from: 0, to: site.bytes.count, by: step).shuffled()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<8 {
                group.addTask {
                    for place in places.enumerated().filter({ $0.offset % 8 == worker }).map(\.element) {
                        let end = min(place + step, site.bytes.count)
                        let part = try await Curl.send("GET", url, options: ["-r", "\(place)-\(end - 1)"])
                        #expect(part.status == 206 && part.body == Array(site.bytes[place..<end]))
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(site.sent < site.bytes.count + 2 * step, "\(site.sent) bytes fetched")
        await site.stop()
        let whole = try await Curl.send("GET", url)
        #expect(whole.status == 200 && whole.body == site.bytes)
        try await server.stop()
    }
}

/// An origin with one file, a strong ETag and ranges, which keeps its connections open.
final class FileSite: Sendable {
    let bytes: [UInt8]
    private let server: RawServer

    var port: Int { server.port }
    /// Number of body bytes requested from the origin.
    var sent: Int { counter.value }
    private let counter: Counter

    private final class Counter: Sendable {
        private let count = Mutex(0)
        var value: Int { count.withLock(\.self) }
        func add(_ bytes: Int) { count.withLock { $0 += bytes } }
    }

    private init(bytes: [UInt8], server: RawServer, counter: Counter) {
        (self.bytes, self.server, self.counter) = (bytes, server, counter)
    }

    /// - Parameter pause: delay after each 64 KiB of a body, so that a transfer takes a known time on any machine.
    static func start(bytes count: Int, pause: Duration = .zero) async throws -> FileSite {
        var random = SystemRandomNumberGenerator()
        let bytes = stride(from: 0, to: count, by: 8).flatMap { _ in withUnsafeBytes(of: random.next()) { Array($0) } }
        let counter = Counter()
        let server = try await RawServer.start { connection in
            while true {
                let head = try await connection.read(through: "\r\n\r\n", within: .seconds(60))
                let range = head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("range: bytes=") }.map { $0.dropFirst(13) }
                let ends = range?.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) } ?? []
                let (first, last) = (ends.first.flatMap(\.self) ?? 0, (ends.last.flatMap(\.self) ?? count - 1))
                let place = range == nil ? "" : "Content-Range: bytes \(first)-\(last)/\(count)\r\n"
                try await connection.send(
                    "HTTP/1.1 \(range == nil ? "200 OK" : "206 Partial Content")\r\nCache-Control: max-age=600\r\nETag: \"v1\"\r\n"
                        + "Content-Length: \(last - first + 1)\r\n\(place)\r\n")
                counter.add(last - first + 1)
                for start in stride(from: first, through: last, by: 65_536) {
                    try await connection.send(Array(bytes[start...min(start + 65_535, last)]))
                    if pause > .zero { try await Task.sleep(for: pause) }
                }
            }
        }
        return FileSite(bytes: bytes, server: server, counter: counter)
    }

    func stop() async { await server.stop() }
}
