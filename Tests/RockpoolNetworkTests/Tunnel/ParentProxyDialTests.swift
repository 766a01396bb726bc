// A parent proxy with several addresses: each is tried separately, the last failure is returned, and no failed connection stays open.
import NIOCore
import NIOPosix
import RockpoolCore
import RockpoolTesting
import Testing

@testable import RockpoolNetwork

@Suite(.timeLimit(.minutes(1))) struct ParentProxyDialTests {
    private func dial(_ ports: [Int]) async throws -> any Channel {
        let pool = try await Pool()
        let dialer = TunnelDialer(
            engine: pool.engine, resolver: AddressResolver(addresses: AddressPolicy(deny: [])), connectTimeout: .seconds(5))
        let parent = try #require(ParentProxy("http://parent.test:3128"))
        let addresses = try ports.map { try SocketAddress(ipAddress: "127.0.0.1", port: $0) }
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        return try await dialer.ask(parent, at: addresses, for: "api.test", port: 443, on: loop) {
            $0.eventLoop.makeSucceededVoidFuture()
        }.get()
    }

    /// Starts a parent proxy that answers with `status` and sets the flag once its connection has been closed.
    private func parent(_ status: Int, left: Flag = Flag()) async throws -> RawServer {
        try await .start { connection in
            _ = try await connection.read(through: "\r\n\r\n")
            try await connection.send("HTTP/1.1 \(status) \r\n\r\n")
            _ = try await connection.readToEnd()
            left.raise()
        }
    }

    @Test func theNextAddressIsAskedWhenNobodyListensAtTheFirst() async throws {
        let good = try await parent(200)
        let channel = try await dial([FreePort.next(), good.port])
        #expect(channel.remoteAddress?.port == good.port && channel.isActive)
        try await channel.close()
    }

    @Test func theNextAddressIsAskedWhenTheFirstRefusesAndThatOneIsClosed() async throws {
        let left = Flag()
        let (bad, good) = (try await parent(503, left: left), try await parent(200))
        let channel = try await dial([bad.port, good.port])
        #expect(channel.remoteAddress?.port == good.port && channel.isActive)
        try await eventually("the refusing one is left") { left.isRaised }
        try await channel.close()
    }

    @Test func theLastFailureIsTheAnswer() async throws {
        let (left, alsoLeft) = (Flag(), Flag())
        let (first, last) = (try await parent(503, left: left), try await parent(407, left: alsoLeft))
        let failure = try await #require(throws: TransferFailure.self) { try await dial([first.port, last.port]) }
        #expect(failure == TransferFailure(kind: .reset, sent: .no, detail: "the parent proxy answered 407"))
        try await eventually("both are left") { left.isRaised && alsoLeft.isRaised }
        await #expect(throws: (any Error).self) { try await dial([FreePort.next(), FreePort.next()]) }
    }
}
