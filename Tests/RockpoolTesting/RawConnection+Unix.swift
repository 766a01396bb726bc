// A bare connection to a Unix socket.
import NIOCore
import NIOPosix

extension RawConnection {
    /// Connects to the socket at `path`. Rethrows the error of the connection attempt.
    package static func open(socket path: String) async throws -> RawConnection {
        let collector = Collector()
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelInitializer { channel in channel.eventLoop.makeCompletedFuture { try collector.join(channel) } }
            .connect(unixDomainSocketPath: path).get()
        return RawConnection(channel, collector)
    }
}
