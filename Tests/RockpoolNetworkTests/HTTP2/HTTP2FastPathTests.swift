// Requests that are answered before their stream has a channel (RFC 9113 §5.1, §5.2, §6.8; docs/architecture.md#parts *memory tier*).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

@testable import RockpoolNetwork

@Suite(.timeLimit(.minutes(1)), .serialized)
struct HTTP2FastPathTests {
    private static let text = String(repeating: "0123456789abcdef", count: 128)

    /// A connection, and the streams that were opened on it.
    private final class Client {
        let connection: RawConnection
        private var last = -1

        init(_ pool: Pool, window: Int) async throws {
            connection = try await pool.tunnel(protocols: ["h2"])
            try await connection.send(RawFrame.preface)
            try await connection.send(RawFrame.initialWindow(window), RawFrame.window(0, 1 << 30))
        }

        /// Sends a request on a new stream. Returns the stream.
        func get(_ path: String = "/a") async throws -> Int {
            last += 2
            try await connection.send(RawFrame.get(last, path))
            return last
        }
    }

    /// Returns a pool that answers `/a` from a hot reply.
    private func hot(_ configure: (inout Configuration) -> Void = { _ in }) async throws -> Pool {
        let pool = try await Pool.intercepting(
            rule: { _ in .ok(Self.text, [.cacheControl: "max-age=60", .contentType: "text/plain"]) }, configure: configure)
        let client = try await Client(pool, window: 1 << 20)
        try await eventually("a hot hit") {
            _ = try await client.connection.frame(of: client.get())
            return pool.engine.statistics.hotHits > 0
        }
        await client.connection.close()
        return pool
    }

    @Test(arguments: [1, 100, 4096]) func anAnswerWaitsForTheWindowOfItsStream(step: Int) async throws {
        let pool = try await hot()
        let client = try await Client(pool, window: 0)
        let before = pool.engine.statistics.hotHits
        for _ in 0..<(step == 1 ? 1 : 3) {
            let stream = try await client.get()
            #expect(try await client.connection.body(stream, step: step) == Array(Self.text.utf8))
        }
        #expect(pool.engine.statistics.hotHits > before && pool.origin.sent.count == 1)
        await client.connection.close()
    }

    /// A client that takes nothing makes the connection hold few answers, and a reset frees them.
    @Test func answersThatWaitAreFewAndEndByAReset() async throws {
        let pool = try await hot()
        let client = try await Client(pool, window: 0)
        let before = pool.engine.statistics.hotHits
        var streams: [Int] = []
        for _ in 0..<40 { streams.append(try await client.get()) }
        for _ in 0..<40 { _ = try await client.connection.frame(.headers) }
        let held = pool.engine.statistics.hotHits - before
        #expect(held > 0 && held < 40, "\(held)")
        for stream in streams { try await client.connection.send(RawFrame.reset(stream)) }
        let stream = try await client.get()
        #expect(try await client.connection.body(stream, step: 1 << 20) == Array(Self.text.utf8))
        #expect(pool.engine.statistics.hotHits - before > held)
        await client.connection.close()
    }

    /// A client that leaves one download waiting and goes on reading other answers is not stuck; one that takes nothing more is.
    @Test func aClientThatTakesAnswersIsNotStuck() async throws {
        let large = String(repeating: Self.text, count: 1000)
        let pool = try await Pool.intercepting(
            rule: { request in
                .ok(request.head.target == "/large" ? large : "small", [.cacheControl: "max-age=60", .contentType: "text/plain"])
            }, configure: { $0.proxy.timeouts.idle = .seconds(3) })
        let client = try await Client(pool, window: 4096)
        let first = try await client.get("/large")
        try await client.connection.send(RawFrame.window(first, 100))
        // The patience is a sixth of the idle timeout.
        let end = ContinuousClock.now + .milliseconds(1500)
        while ContinuousClock.now < end {
            let stream = try await client.get()
            while true {
                let frame = try await client.connection.frame(.data, .headers, .goAway)
                try #require(frame.kind != .goAway)
                if frame.stream == stream, frame.flags & 1 == 1 { break }
            }
            try await Task.sleep(for: .milliseconds(100))
        }
        #expect(pool.engine.statistics.hotHits > 5)
        let farewell = try await client.connection.frame(.goAway)
        #expect(farewell.code == 11, "ENHANCE_YOUR_CALM")
        await client.connection.close()
    }

    /// Every answer counts for the limit of a connection.
    @Test func aConnectionEndsAtItsLimit() async throws {
        let pool = try await hot { $0.proxy.limits.requestsPerConnection = 20 }
        let client = try await Client(pool, window: 1 << 20)
        for _ in 0..<20 { _ = try await client.get() }
        #expect(try await client.connection.frame(.goAway).code == 0)
        await client.connection.close()
    }

    /// A connection that ends at its limit ends after what it has answered, also while the client takes that slowly and goes on sending.
    @Test func aConnectionThatEndsSendsItsAnswersWhole() async throws {
        let pool = try await hot { $0.proxy.limits.requestsPerConnection = 12 }
        let client = try await Client(pool, window: 0)
        var streams: [Int] = []
        for _ in 0..<20 { streams.append(try await client.get()) }
        #expect(try await client.connection.frame(.goAway).code == 0)
        try await Task.sleep(for: .milliseconds(300))
        for stream in streams.prefix(12) {
            try? await client.connection.send(RawFrame.get(stream + 100))
            #expect(try await client.connection.body(stream, step: 1 << 20) == Array(Self.text.utf8), "\(stream)")
        }
        await client.connection.close()
    }

    /// Answers are work: a connection is idle from the last one on.
    @Test func aConnectionWithAnswersIsNotIdle() async throws {
        let pool = try await hot { $0.proxy.timeouts.idle = .milliseconds(600) }
        let client = try await Client(pool, window: 1 << 20)
        for _ in 0..<10 {
            let stream = try await client.get()
            #expect(try await client.connection.frame(.headers, .goAway).stream == stream)
            try await Task.sleep(for: .milliseconds(200))
        }
        #expect(try await client.connection.frame(.goAway).kind == .goAway)
        await client.connection.close()
    }
}

extension RawConnection {
    /// Reads the response of a stream to its end.
    fileprivate func frame(of stream: Int) async throws -> RawFrame {
        while true {
            let frame = try await frame(.data, .headers)
            if frame.stream == stream, frame.flags & 1 == 1 { return frame }
        }
    }
}
