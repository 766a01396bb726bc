// Tunnels that should be decrypted but cannot be: protocols other than TLS, and clients that do not trust the proxy's authority
// (docs/security-model.md#interception).
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

@testable import RockpoolNetwork

@Suite(.timeLimit(.minutes(2)), .serialized) struct BypassTests {
    /// Starts an upstream that echoes the received bytes after the client's half-close.
    private func echo() async throws -> RawServer {
        try await .start { try await $0.send("heard: \(try await $0.readToEnd())") }
    }

    /// Returns a pool that decrypts tunnels to a port of this machine.
    private func intercepting(_ port: Int) async throws -> Pool {
        try await Pool.intercepting {
            $0.proxy.connectPorts = [port]
            $0.proxy.intercept = ["127.0.0.1:\(port)"]
        }
    }

    private func connect(_ pool: Pool, _ port: Int, then early: String = "") async throws -> RawConnection {
        let client = try await RawConnection.open(pool.proxy)
        try await client.send("CONNECT 127.0.0.1:\(port) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\r\n\(early)")
        _ = try await client.read(through: "\r\n\r\n")
        return client
    }

    @Test(arguments: [true, false]) func whatIsNoTLSIsPassedByteByByte(isEarly: Bool) async throws {
        let far = try await echo()
        let request = "GET /chat HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\r\n\u{16}\u{3}\u{1}"
        let client = try await connect(intercepting(far.port), far.port, then: isEarly ? request : "")
        if !isEarly { try await client.send(request) }
        try await client.send("more")
        try await client.finish()
        #expect(try await client.readToEnd(within: .seconds(10)) == "heard: \(request)more")
    }

    @Test func whatIsNoTLSAndLeadsNowhereIsClosed() async throws {
        let port = FreePort.next()
        let client = try await connect(intercepting(port), port, then: "hello")
        #expect(try await client.readToEnd(within: .seconds(10)) == "")
    }

    @Test func aClientThatDoesNotTrustUsIsLeftAloneForAWhile() async throws {
        let far = try await echo()
        let pool = try await intercepting(far.port)
        let reply = try await pool.curl("https://127.0.0.1:\(far.port)/a", trusts: false)
        #expect(reply.exit == 60)
        try await eventually("the refusal is noted") { !pool.engine.untrusting.list.isEmpty }
        #expect(pool.engine.untrusting.list.first?.bypassedUntil == pool.scripted.clock.now + UntrustingClients.bypass)
        // The handshake is now forwarded to the host itself.
        let client = try await connect(pool, far.port, then: "\u{16}\u{3}\u{1}")
        try await client.finish()
        #expect(try await client.readToEnd(within: .seconds(10)) == "heard: \u{16}\u{3}\u{1}")
        pool.scripted.clock.advance(by: UntrustingClients.bypass)
        #expect(try await pool.curl("https://127.0.0.1:\(far.port)/a").text == "pearl")
        #expect(pool.engine.untrusting.list.isEmpty)
    }

    /// Any client can make a request of this type.
    @Test(arguments: ["application/grpc", "application/grpc+proto", "application/grpc; x=1"])
    func aCallDoesNotEndTheDecryptionOfADeclaredUpstream(type: String) async throws {
        let pool = try await Pool.intercepting()
        for _ in 0..<2 {
            let call = try await pool.curl(
                "https://api.test/pool/Unary", ["--http2", "-H", "Content-Type: \(type)", "-H", "TE: trailers"], method: "POST", body: "x")
            #expect(call.exit == 0 && call.status == 200, "\(call.exit) \(call.status)")
        }
        #expect(pool.engine.untrusting.list.isEmpty)
        // No server has this name; the answer that says so comes under our certificate.
        #expect(try await pool.curl("https://api.test/a").exit == 0)
    }

    @Test func anUpstreamDeclaredToBeDecryptedIsNeverGoneAround() async throws {
        let pool = try await Pool.intercepting()
        #expect(try await pool.curl("https://api.test/a", trusts: false).exit == 60)
        try await eventually("the refusal is noted") { !pool.engine.untrusting.list.isEmpty }
        #expect(pool.engine.untrusting.list.first?.bypassedUntil == nil)
        #expect(try await pool.curl("https://api.test/a").text == "pearl")
    }
}
