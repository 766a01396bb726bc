// The limit on connections, and the choice of the connection to close at the limit (docs/security-model.md#connections).
import NIOCore
import NIOEmbedded
import RockpoolCore
import Synchronization
import Testing

@testable import RockpoolEngine

struct OpenConnectionsTests {
    private func channel() throws -> EmbeddedChannel {
        let channel = EmbeddedChannel(handler: Obedient())
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        return channel
    }

    @Test func theLimitHoldsWhileAllAreAtWork() throws {
        let open = OpenConnections(limit: 2)
        let channels = try [channel(), channel(), channel()]
        for index in 0..<2 { try #require(open.admit(channels[index])).noteWork() }
        #expect(open.admit(channels[2]) == nil)
        #expect(open.count == 2 && channels[0].isActive && channels[1].isActive)
    }

    @Test func theLongestIdleMakesRoom() throws {
        let open = OpenConnections(limit: 3)
        let channels = try (0..<5).map { _ in try channel() }
        let connections = try (0..<3).map { try #require(open.admit(channels[$0])) }
        for connection in connections { connection.noteIdle(since: .now()) }
        connections[0].noteWork()
        connections[0].noteIdle(since: .now())
        #expect(open.admit(channels[3]) != nil)
        #expect(channels.map(\.isActive) == [true, false, true, true, true], "the first connection has been used since")
        connections[2].noteWork()
        for channel in channels { channel.embeddedEventLoop.run() }
        #expect(open.admit(channels[4]) != nil)
        #expect(channels.map(\.isActive) == [false, false, true, true, true], "the connection at work stays open")
        #expect(open.count == 3)
    }

    @Test func aThousandAtWorkCostNoMoreThanAFew() throws {
        let open = OpenConnections(limit: 1000)
        let connections = try (0..<1000).map { _ in try #require(open.admit(channel())) }
        for connection in connections.dropLast() { connection.noteWork() }
        try #expect(open.admit(channel()) == nil, "at most \(ConnectionQueue.looks) connections are examined")
        // Each refusal moves the examined connections to the back, so the idle one is reached in the end.
        let needed = (1...20).first { _ in (try? open.admit(channel())) != nil }
        #expect(needed.map { $0 <= 1000 / ConnectionQueue.looks + 1 } == true)
        #expect(!connections[999].isOpen && open.count == 1000)
    }

    @Test func oneAddressMakesRoomForItself() throws {
        let open = OpenConnections(limit: 10, sourceLimit: 2)
        let (mine, theirs) = (IPAddress("192.0.2.1"), IPAddress("192.0.2.2"))
        let other = try #require(open.admit(channel(), from: theirs))
        let first = try #require(open.admit(channel(), from: mine))
        let second = try #require(open.admit(channel(), from: mine))
        let third = try #require(open.admit(channel(), from: mine))
        #expect(other.isOpen && !first.isOpen && second.isOpen && open.count == 3)
        for connection in [second, third] { connection.noteWork() }
        try #expect(open.admit(channel(), from: mine) == nil, "one past the limit while all connections are at work")
        try #expect(open.admit(channel(), from: theirs) != nil && open.admit(channel()) != nil)
        let leaving = try #require(second.channel as? EmbeddedChannel)
        leaving.close(promise: nil)
        leaving.embeddedEventLoop.run()
        try #expect(open.admit(channel(), from: mine) != nil, "the closed connection has freed a place")
    }

    @Test func closedConnectionsLeaveNoTrace() throws {
        var queue = ConnectionQueue()
        for _ in 0..<10_000 {
            let connection = OpenConnection(try channel(), source: nil)
            queue.insert(connection)
            _ = connection.noteClosed()
            queue.noteClosed()
        }
        #expect(queue.count == 0 && queue.places <= 2 * ConnectionQueue.looks)
    }

    @Test func oneThatClosesMakesRoom() throws {
        let open = OpenConnections(limit: 1)
        let (first, second) = (try channel(), try channel())
        try #require(open.admit(first)).noteWork()
        try first.close().wait()
        first.embeddedEventLoop.run()
        #expect(open.count == 0)
        #expect(open.admit(second) != nil)
    }

    /// A connection that rests counts although its channel is closed, is closed at a limit, and gets another channel.
    @Test func oneThatRestsCounts() throws {
        let rest = Rest()
        let open = OpenConnections(limit: 2, rest: rest)
        let (first, again) = (try channel(), try channel())
        let connection = try #require(open.admit(first))
        func rests(on channel: EmbeddedChannel) throws {
            #expect(open.rests(connection))
            try channel.close().wait()
            channel.embeddedEventLoop.run()
        }
        try rests(on: first)
        #expect(open.count == 1 && connection.isOpen)
        #expect(open.resumes(connection, on: again))
        try rests(on: again)
        try #require(open.admit(channel())).noteWork()
        #expect(try open.admit(channel()) != nil)
        #expect(rest.ended.withLock { $0 } == [ObjectIdentifier(connection)] && open.count == 2)
        #expect(try !open.resumes(connection, on: channel()), "it was closed for another")
    }

    @Test func noneRestsInADrain() throws {
        let open = OpenConnections(limit: 2)
        let connection = try #require(open.admit(channel()))
        open.drain()
        #expect(!open.rests(connection))
    }

    @Test func closeAllClosesEverything() throws {
        let open = OpenConnections(limit: 9)
        let channels = try (0..<3).map { _ in try channel() }
        for channel in channels { _ = open.admit(channel) }
        open.closeAll()
        for channel in channels { channel.embeddedEventLoop.run() }
        #expect(channels.allSatisfy { !$0.isActive } && open.count == 0)
    }
}

/// Records what it is told to close.
private final class Rest: ConnectionRest {
    let ended = Mutex<[ObjectIdentifier]>([])

    func end(_ connection: OpenConnection) { ended.withLock { $0.append(ObjectIdentifier(connection)) } }
    func endAll() {}
}

/// Closes its channel when told to drain, like an idle connection.
private final class Obedient: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is DrainEvent { context.close(promise: nil) }
    }
}
