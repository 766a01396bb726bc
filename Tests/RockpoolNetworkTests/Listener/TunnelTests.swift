// Tunnels: CONNECT and WebSocket upgrades, bytes both ways, half-close, refusals (RFC 9110 §9.3.6, §7.8).
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

@testable import RockpoolNetwork

@Suite(.timeLimit(.minutes(1)), .serialized)
struct TunnelTests {
    /// Starts an upstream that echoes the received bytes after the client's half-close, followed by "goodbye".
    private func echo() async throws -> RawServer {
        try await .start { connection in
            let all = try await connection.readToEnd()
            try await connection.send("\(all), goodbye")
        }
    }

    private func proxying(to port: Int, _ configure: (inout Configuration) -> Void = { _ in }) async throws -> Pool {
        try await Pool { configuration in
            configuration.proxy.connectPorts = [port]
            configure(&configuration)
        }
    }

    @Test func bytesCrossAndAHalfCloseIsPassedOn() async throws {
        let far = try await echo()
        let client = try await RawConnection.open(try await proxying(to: far.port).proxy)
        try await client.send("CONNECT 127.0.0.1:\(far.port) HTTP/1.1\r\nHost: 127.0.0.1:\(far.port)\r\n\r\n")
        let head = try await client.read(through: "\r\n\r\n")
        #expect(
            head.hasPrefix("HTTP/1.1 200 ") && !head.lowercased().contains("content-length")
                && !head.lowercased().contains("transfer-encoding"))
        try await client.send("hello")
        try await client.finish()
        #expect(try await client.readToEnd(within: .seconds(10)) == "hello, goodbye")
    }

    @Test func whatTheClientSentTooEarlyIsNotLost() async throws {
        let far = try await echo()
        let client = try await RawConnection.open(try await proxying(to: far.port).proxy)
        try await client.send("CONNECT 127.0.0.1:\(far.port) HTTP/1.1\r\nHost: 127.0.0.1:\(far.port)\r\n\r\nearly\r\n\r\n")
        _ = try await client.read(through: "\r\n\r\n")
        try await client.finish()
        #expect(try await client.readToEnd(within: .seconds(10)) == "early\r\n\r\n, goodbye")
    }

    @Test func manyBytesCrossUnchanged() async throws {
        let far = try await RawServer.start { connection in
            for _ in 0..<64 { try await connection.send(try await connection.read(bytes: 64 * 1024)) }
        }
        let client = try await RawConnection.open(try await proxying(to: far.port).proxy)
        try await client.send("CONNECT 127.0.0.1:\(far.port) HTTP/1.1\r\nHost: 127.0.0.1:\(far.port)\r\n\r\n")
        _ = try await client.read(through: "\r\n\r\n")
        for number in 0..<64 {
            let block = [UInt8](repeating: UInt8(number), count: 64 * 1024)
            try await client.send(block)
            #expect(try await client.read(bytes: block.count) == block)
        }
    }

    @Test func theFarEndsCloseIsPassedOn() async throws {
        let far = try await RawServer.start { try await $0.send("bye") }
        let client = try await RawConnection.open(try await proxying(to: far.port).proxy)
        try await client.send("CONNECT 127.0.0.1:\(far.port) HTTP/1.1\r\nHost: 127.0.0.1:\(far.port)\r\n\r\n")
        _ = try await client.read(through: "\r\n\r\n")
        #expect(try await client.readToEnd(within: .seconds(10)) == "bye")
    }

    @Test func aTunnelWithoutTrafficIsClosed() async throws {
        let far = try await echo()
        let pool = try await proxying(to: far.port) { $0.proxy.timeouts.tunnel = .milliseconds(150) }
        let client = try await RawConnection.open(pool.proxy)
        try await client.send("CONNECT 127.0.0.1:\(far.port) HTTP/1.1\r\nHost: 127.0.0.1:\(far.port)\r\n\r\n")
        _ = try await client.read(through: "\r\n\r\n")
        #expect(try await client.readToEnd(within: .seconds(10)) == "")
    }

    @Test(arguments: [
        ("CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n", 403),
        ("CONNECT 127.0.0.1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 400),
        ("CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n", 502),
        ("CONNECT no-such-host.invalid:1 HTTP/1.1\r\nHost: no-such-host.invalid:1\r\n\r\n", 502),
    ])
    func whatCannotBeTunnelledIsAnswered(request: String, status: Int) async throws {
        let pool = try await proxying(to: 1)
        let client = try await RawConnection.open(pool.proxy)
        try await client.send(request)
        #expect(try await client.readToEnd(within: .seconds(10)).hasPrefix("HTTP/1.1 \(status) "))
    }

    @Test func switchedOffByHandNoTunnelLeaves() async throws {
        let far = try await echo()
        let pool = try await proxying(to: far.port)
        _ = pool.engine.reachability.setMode(.offline, upstream: nil, now: pool.scripted.clock.now)
        let client = try await RawConnection.open(pool.proxy)
        try await client.send("CONNECT 127.0.0.1:\(far.port) HTTP/1.1\r\nHost: 127.0.0.1:\(far.port)\r\n\r\n")
        #expect(try await client.readToEnd(within: .seconds(10)).hasPrefix("HTTP/1.1 502 "))
    }

    // MARK: upgrades

    private let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n"

    @Test func anUpgradeBecomesATunnel() async throws {
        let far = try await RawServer.start { connection in
            let head = try await connection.read(through: "\r\n\r\n")
            guard head.hasPrefix("GET /chat?x=1 HTTP/1.1\r\n"), head.contains("Upgrade: websocket\r\n"),
                head.contains("Sec-WebSocket-Key: k\r\n"),
                head.contains("Via: 1.1 pool\r\n")
            else { return }
            try await connection.send(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: a\r\n\r\nhi")
            let said = try await connection.read(bytes: 5)
            try await connection.send(said)
        }
        let client = try await RawConnection.open(try await proxying(to: far.port).proxy)
        try await client.send("GET http://127.0.0.1:\(far.port)/chat?x=1 HTTP/1.1\r\nHost: 127.0.0.1:\(far.port)\r\n\(upgrade)")
        let head = MessageHead(try await client.read(through: "\r\n\r\n"))
        #expect(head.status == 101 && head["upgrade"] == "websocket" && head["connection"]?.lowercased() == "upgrade")
        #expect(head["sec-websocket-accept"] == "a")
        #expect(try await client.read(bytes: 2) == Array("hi".utf8))
        try await client.send("hello")
        #expect(try await client.read(bytes: 5) == Array("hello".utf8))
    }

    @Test func aRefusedUpgradeIsPassedBackAndClosed() async throws {
        let far = try await RawServer.start { connection in
            _ = try await connection.read(through: "\r\n\r\n")
            try await connection.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
        }
        let client = try await RawConnection.open(try await proxying(to: far.port).proxy)
        try await client.send("GET http://127.0.0.1:\(far.port)/ HTTP/1.1\r\nHost: 127.0.0.1:\(far.port)\r\n\(upgrade)")
        let all = try await client.readToEnd(within: .seconds(10))
        #expect(all.hasPrefix("HTTP/1.1 403 ") && all.hasSuffix("\r\n\r\nno") && all.contains("Connection: close\r\n"))
    }

    @Test func anUpstreamThatClosesInsteadIs502() async throws {
        let far = try await RawServer.start { _ = try await $0.read(through: "\r\n\r\n") }
        let client = try await RawConnection.open(try await proxying(to: far.port).proxy)
        try await client.send("GET http://127.0.0.1:\(far.port)/ HTTP/1.1\r\nHost: 127.0.0.1:\(far.port)\r\n\(upgrade)")
        #expect(try await client.readToEnd(within: .seconds(10)).hasPrefix("HTTP/1.1 502 "))
    }
}
