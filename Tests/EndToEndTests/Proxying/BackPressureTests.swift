// With a slow client, the server does not buffer a large body in memory (issue 2, item 2).
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

@Suite(.serialized) struct BackPressureTests {
    static let total = 20 << 20

    @Test(arguments: ["no-store", "max-age=600"]) func aSlowReaderHoldsTheUpstreamBack(_ cacheControl: String) async throws {
        let sent = Mutex(0)
        let upstream = try await RawServer.start { connection in
            _ = try await connection.read(through: "\r\n\r\n")
            try await connection.send(
                "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nCache-Control: \(cacheControl)\r\nContent-Length: \(Self.total)\r\n\r\n")
            let piece = [UInt8](repeating: 7, count: 1 << 16)
            for _ in 0..<Self.total / piece.count {
                try await connection.send(piece)
                sent.withLock { $0 += piece.count }
            }
            _ = try? await connection.readToEnd(within: .seconds(60))
        }
        let server = try await ServerProcess.start(ServerSettings(upstream: upstream.port))
        _ = try await Curl.send("GET", "http://\(server.gateway)/.well-known/rockpool/operations/none")
        let before = try server.residentBytes()
        let client = try await RawConnection.open(server.gateway, isSlow: true)
        try await client.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        var received = try await client.take() ?? 0
        var (seen, unchanged) = (-1, 0)
        try await eventually("the upstream is held back") {
            let now = sent.withLock { $0 }
            (seen, unchanged) = (now, now == seen ? unchanged + 1 : 0)
            return unchanged == 20
        }
        #expect(seen < Self.total)
        var peak = try server.residentBytes()
        while received < Self.total, let count = try await client.take() {
            received += count
            peak = max(peak, try server.residentBytes())
        }
        #expect(received >= Self.total)
        #expect(peak - before < 32 << 20, "the memory grew by \((peak - before) >> 20) MiB")
        await client.close()
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await upstream.stop()
    }
}
