// An upstream that says exactly what a test wants: a script for every connection.
import NIOCore
import NIOPosix
import Synchronization

/// A TCP server whose every connection is played by a script: an upstream that says exactly what a test wants.
package final class RawServer: Sendable {
    /// The loopback port it listens on.
    package let port: Int
    private let listener: any Channel
    private let tasks: Accepted

    /// Listens, on a free port unless told; each connection is handed to `script` and closed when that returns or throws. Throws what
    /// binding throws.
    package static func start(
        port: Int = 0, _ script: @escaping @Sendable (RawConnection) async throws -> Void
    ) async throws -> RawServer {
        let tasks = Accepted()
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let collector = Collector()
                    try collector.join(channel)
                    tasks.add(
                        Task {
                            let connection = RawConnection(channel, collector)
                            try? await script(connection)
                            await connection.close()
                        })
                }
            }
            .bind(host: "127.0.0.1", port: port).get()
        return RawServer(port: listener.localAddress?.port ?? 0, listener: listener, tasks: tasks)
    }

    /// Listens and answers every request without a body by what `answer` makes of its head; connections are kept.
    package static func answering(_ answer: @escaping @Sendable (String) -> String) async throws -> RawServer {
        try await start { connection in
            while true { try await connection.send(answer(try await connection.read(through: "\r\n\r\n", within: .seconds(60)))) }
        }
    }

    private init(port: Int, listener: any Channel, tasks: Accepted) {
        self.port = port
        self.listener = listener
        self.tasks = tasks
    }

    /// Stops listening, and every script.
    package func stop() async {
        try? await listener.close().get()
        tasks.cancel()
    }
}

/// The scripts under way.
private final class Accepted: Sendable {
    private let tasks = Mutex<[Task<Void, Never>]>([])

    func add(_ task: Task<Void, Never>) { tasks.withLock { $0.append(task) } }

    func cancel() { tasks.withLock { $0 }.forEach { $0.cancel() } }
}
