// What the kernel has received on a connection and nobody has read (docs/architecture.md#relays).
import NIOCore
import NIOPosix
import Testing

@testable import RockpoolNetwork

struct UnreadBytesTests {
    /// A connection that reads when it is told to, and the other side of it, each on a thread of its own.
    private struct Pair {
        let client: any Channel
        let server: any Channel
        let unread: NIOLoopBound<UnreadBytes>

        static func with(_ body: (Pair) async throws -> Void) async throws {
            let threads = MultiThreadedEventLoopGroup(numberOfThreads: 2)
            let (near, far) = (threads.next(), threads.next())
            let accepted = far.makePromise(of: (any Channel).self)
            let listener = try await ServerBootstrap(group: far)
                .childChannelInitializer { channel in
                    accepted.succeed(channel)
                    return channel.eventLoop.makeSucceededVoidFuture()
                }
                .bind(host: "127.0.0.1", port: 0).get()
            let client = try await ClientBootstrap(group: near)
                .channelOption(.autoRead, value: false)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(UnreadBytes()) }
                }
                .connect(to: try #require(listener.localAddress)).get()
            let server = try await accepted.futureResult.get()
            let unread = try await near.submit {
                NIOLoopBound(try client.pipeline.syncOperations.handler(type: UnreadBytes.self), eventLoop: near)
            }.get()
            try await body(Pair(client: client, server: server, unread: unread))
            try await threads.shutdownGracefully()
        }

        func areNone() async throws -> Bool {
            try await client.eventLoop.submit { [client, unread] in unread.value.areNone(on: client) }.get()
        }

        /// Waits until it is as expected: bytes take a moment over loopback.
        func becomes(_ expected: Bool) async throws -> Bool {
            for _ in 0..<200 {
                if try await areNone() == expected { return true }
                try await Task.sleep(for: .milliseconds(10))
            }
            return false
        }
    }

    @Test func bytesThatNobodyHasReadAreSeen() async throws {
        try await Pair.with { pair in
            #expect(try await pair.areNone())
            try await pair.server.writeAndFlush(ByteBuffer(string: "stray"))
            #expect(try await pair.becomes(false))
            pair.client.read()
            #expect(try await pair.becomes(true), "they were read")
        }
    }

    /// The loop learns of the end of the other side in its next turn only.
    @Test func theEndOfTheOtherSideIsSeenAtOnce() async throws {
        try await Pair.with { pair in
            // The first byte makes the counts differ from none.
            try await pair.server.writeAndFlush(ByteBuffer(string: "a"))
            #expect(try await pair.becomes(false))
            pair.client.read()
            #expect(try await pair.becomes(true))
            let isSeen = try await pair.client.eventLoop.submit { [pair] in
                pair.server.close(promise: nil)
                let end = NIODeadline.now() + .seconds(10)
                while pair.client.isActive, NIODeadline.now() < end {
                    if !pair.unread.value.areNone(on: pair.client) { return true }
                }
                return false
            }.get()
            #expect(isSeen)
        }
    }
}
