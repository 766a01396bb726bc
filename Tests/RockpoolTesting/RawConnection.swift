// A bare TCP connection that sends and receives bytes, so that a test can send data that no client library would send.
import Glibc
import NIOCore
import NIOPosix
import Synchronization

/// One end of a TCP connection.
package final class RawConnection: Sendable {
    /// Received data that has not been read yet.
    struct Inbox {
        var bytes: [UInt8] = []
        var isEnded = false

        /// Removes and returns the first bytes.
        mutating func take(_ count: Int) -> [UInt8] {
            defer { bytes.removeFirst(count) }
            return Array(bytes[..<count])
        }

        /// Returns nil while more data may arrive; throws once the connection has ended.
        func checkNotEnded() throws -> [UInt8]? {
            guard isEnded else { return nil }
            throw NeverCame(description: "the connection ended after \(String(decoding: bytes, as: UTF8.self).debugDescription)")
        }
    }

    let channel: any Channel
    private let collector: Collector

    init(_ channel: any Channel, _ collector: Collector) {
        self.channel = channel
        self.collector = collector
    }

    /// Connects to `host:port`. With `isSlow`, only `take` reads bytes from the socket. Rethrows the error of the connection attempt.
    package static func open(_ address: String, isSlow: Bool = false) async throws -> RawConnection {
        let parts = address.split(separator: ":")
        let collector = Collector()
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.autoRead, value: !isSlow)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelInitializer { channel in channel.eventLoop.makeCompletedFuture { try collector.join(channel) } }
            .connect(host: String(parts.first ?? ""), port: parts.last.flatMap { Int($0) } ?? 0).get()
        return RawConnection(channel, collector)
    }

    /// Writes bytes and waits until the socket has accepted them. Throws when the connection is closed.
    package func send(_ text: String) async throws { try await channel.writeAndFlush(ByteBuffer(string: text)).get() }

    /// Writes bytes and waits until the socket has accepted them. Throws when the connection is closed.
    package func send(_ bytes: [UInt8]) async throws { try await channel.writeAndFlush(ByteBuffer(bytes: bytes)).get() }

    /// True if bytes have arrived that were not read.
    package var hasReceived: Bool { collector.inbox.withLock { !$0.bytes.isEmpty } }

    /// Closes the sending direction.
    package func finish() async throws { try await channel.close(mode: .output).get() }

    /// Ends the connection with a TCP reset.
    package func reset() async throws {
        try await (channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0)).get()
        await close()
    }

    /// Ends the connection.
    package func close() async { try? await channel.close().get() }

    /// Reads up to and including `mark`. Throws `NeverCame` when `mark` was not received in time.
    package func read(through mark: String, within limit: Duration = .seconds(20)) async throws -> String {
        let mark = Array(mark.utf8)
        let bytes = try await eventualValue("\(String(decoding: mark, as: UTF8.self).debugDescription) on the connection", within: limit) {
            try collector.inbox.withLock { inbox in
                guard let found = inbox.bytes.firstRange(of: mark) else { return try inbox.checkNotEnded() }
                return inbox.take(found.upperBound)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Reads exactly this many bytes. Throws `NeverCame` when they were not received in time.
    package func read(bytes count: Int, within limit: Duration = .seconds(20)) async throws -> [UInt8] {
        try await eventualValue("\(count) bytes on the connection", within: limit) {
            try collector.inbox.withLock { inbox in
                inbox.bytes.count >= count ? inbox.take(count) : try inbox.checkNotEnded()
            }
        }
    }

    /// Reads everything until the peer closes the connection. Throws `NeverCame` when the peer does not close it in time.
    package func readToEnd(within limit: Duration = .seconds(20)) async throws -> String {
        try await eventually("the end of the connection", within: limit) { collector.inbox.withLock { $0.isEnded } }
        return String(decoding: collector.inbox.withLock { $0.bytes }, as: UTF8.self)
    }

    /// Reads one response with a `Content-Length`, or without a body. Throws `NeverCame` when the response is not complete in time.
    package func response(hasBody: Bool = true, within limit: Duration = .seconds(20)) async throws -> (head: MessageHead, body: String) {
        let head = MessageHead(try await read(through: "\r\n\r\n", within: limit))
        let length = hasBody ? head["content-length"].flatMap { Int($0) } ?? 0 : 0
        return (head, String(decoding: try await read(bytes: length, within: limit), as: UTF8.self))
    }

    /// Reads from the socket once and drops the bytes. Returns their number, nil at the end of the connection.
    package func take(within limit: Duration = .seconds(20)) async throws -> Int? {
        channel.read()
        return try await eventualValue("bytes on a slow connection", within: limit) { () -> Int?? in
            collector.inbox.withLock { inbox in
                if inbox.bytes.isEmpty { return inbox.isEnded ? .some(nil) : nil }
                defer { inbox.bytes.removeAll() }
                return .some(inbox.bytes.count)
            }
        }
    }
}

/// Collects the bytes that a channel reads.
final class Collector: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer
    let inbox = Mutex(RawConnection.Inbox())

    func join(_ channel: any Channel) throws { try channel.pipeline.syncOperations.addHandler(self) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = Array(unwrapInboundIn(data).readableBytesView)
        inbox.withLock { $0.bytes += bytes }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event as? ChannelEvent == .inputClosed { inbox.withLock { $0.isEnded = true } }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) { inbox.withLock { $0.isEnded = true } }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
