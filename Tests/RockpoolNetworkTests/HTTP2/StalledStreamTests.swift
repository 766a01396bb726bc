// Streams of a client that reads nothing or reads slowly (RFC 9113 §5.2; docs/security-model.md#stalled-readers).
import Foundation
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

@testable import RockpoolNetwork

@Suite(.timeLimit(.minutes(1)), .serialized)
struct StalledStreamTests {
    /// A body larger than the server keeps in memory.
    private static let large = String(repeating: "0123456789abcdef", count: 125_000)

    /// Opens a connection on which all streams begin with a window of `window` bytes.
    private func connect(_ pool: Pool, window: Int) async throws -> RawConnection {
        let client = try await pool.tunnel(protocols: ["h2"])
        try await client.send(RawFrame.preface)
        try await client.send(RawFrame.initialWindow(window), RawFrame.window(0, 1 << 30))
        return client
    }

    /// Returns a pool that has the large body in its cache, in a file.
    private func stocked(_ configure: (inout Configuration) -> Void = { _ in }) async throws -> Pool {
        let pool = try await Pool.intercepting(
            rule: { _ in .ok(Self.large, [.cacheControl: "max-age=60", .contentType: "image/png"]) }, configure: configure)
        let client = try await connect(pool, window: 0)
        try await client.send(RawFrame.get(1))
        #expect(try await client.body(1, step: 4 << 20).count == Self.large.utf8.count)
        await client.close()
        try await eventually("it has left") { pool.listeners.connections.count == 0 }
        return pool
    }

    /// Returns the number of open descriptors of the pool's stored files.
    private func descriptors(_ pool: Pool) -> Int {
        let home = "\(URL(fileURLWithPath: pool.scripted.store.directory).lastPathComponent)/cache/bodies/"
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return names.count { name in
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)"))?.contains(home) == true
        }
    }

    @Test func streamsWithoutAWindowShareADescriptor() async throws {
        let pool = try await stocked()
        let client = try await connect(pool, window: 0)
        for number in 0..<20 { try await client.send(RawFrame.get(number * 2 + 1)) }
        for _ in 0..<20 { #expect(try await client.frame(.headers).kind == .headers) }
        try await eventually("all wait, one descriptor is open") { descriptors(pool) == 1 }
        #expect(pool.origin.sent.count == 1, "the response is served from the cache")
        #expect(try await client.body(7, step: 4 << 20) == Array(Self.large.utf8))
        await client.close()
        try await eventually("none is open") { descriptors(pool) == 0 }
    }

    @Test(arguments: [10_000, 100_000]) func aBodyComesWholeThroughASmallWindow(step: Int) async throws {
        let pool = try await stocked()
        let client = try await connect(pool, window: 0)
        try await client.send(RawFrame.get(1))
        #expect(try await client.body(1, step: step) == Array(Self.large.utf8))
    }

    @Test func aClientThatTakesNothingIsGivenUp() async throws {
        let pool = try await stocked { $0.proxy.timeouts.idle = .seconds(3) }
        let client = try await connect(pool, window: 0)
        for number in 0..<3 { try await client.send(RawFrame.get(number * 2 + 1)) }
        let farewell = try await client.frame(.goAway)
        #expect(farewell.code == 11, "ENHANCE_YOUR_CALM")
        _ = try await client.readToEnd()
        try await eventually("nothing is left of it") { descriptors(pool) == 0 && pool.listeners.connections.count == 0 }
    }

    @Test func aStreamThatWaitsForItsUpstreamIsNotGivenUp() async throws {
        let gate = Gate()
        let pool = try await Pool.intercepting(
            rule: { _ in .held(gate, .ok()) }, configure: { $0.proxy.timeouts.idle = .milliseconds(1200) })
        let client = try await connect(pool, window: 1 << 20)
        try await client.send(RawFrame.get(1))
        try await eventually("it is under way") { pool.origin.sent.count == 1 }
        // 1 s is five times the patience, which is a sixth of the idle timeout.
        try await Task.sleep(for: .seconds(1))
        gate.open()
        #expect(try await client.frame(.headers, .goAway).kind == .headers)
    }
}
