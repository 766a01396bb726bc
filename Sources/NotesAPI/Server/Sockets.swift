// The listener of a notes server and its accepted connections, so that both can be closed and the port bound again.
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

final class Sockets: Sendable {
    private struct State: ~Copyable {
        var listener: (any Channel)?
        var connections: [ObjectIdentifier: any Channel] = [:]
        var server: NotesServer?
    }

    private let state = Mutex(State())

    /// Binds and listens; returns the port. Connections wait until `serve`.
    func open(host: String, port: Int) async throws -> Int {
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: 256)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.autoRead, value: false)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { self.admit($0) }
            .bind(host: host, port: port).get()
        state.withLock { $0.listener = listener }
        return listener.localAddress?.port ?? port
    }

    /// Accepts connections for `server` from now on.
    func serve(with server: NotesServer) {
        let listener = state.withLock { state in
            state.server = server
            return state.listener
        }
        listener?.setOption(.autoRead, value: true).whenSuccess { listener?.read() }
    }

    /// Closes the listener, then every connection.
    func close() async {
        let listener = state.withLock { $0.listener.take() }
        try? await listener?.close().get()
        let connections = state.withLock { state in
            state.server = nil
            return Array(state.connections.values)
        }
        for connection in connections { try? await connection.close().get() }
    }

    private func admit(_ channel: any Channel) -> EventLoopFuture<Void> {
        let server = state.withLock { state -> NotesServer? in
            if state.server != nil { state.connections[ObjectIdentifier(channel)] = channel }
            return state.server
        }
        guard let server else { return channel.close() }
        channel.closeFuture.whenComplete { _ in
            self.state.withLock { $0.connections[ObjectIdentifier(channel)] = nil }
        }
        return channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.configureHTTPServerPipeline(withErrorHandling: true)
            try channel.pipeline.syncOperations.addHandler(NotesConnection(server: server))
        }
    }
}
