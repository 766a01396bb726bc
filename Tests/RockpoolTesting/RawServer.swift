// An upstream that sends exactly the bytes of a test: a script runs for every connection.
import NIOCore
import NIOPosix
import Synchronization

/// A TCP server that runs a script for every connection, as an upstream that sends exactly the bytes of a test.
package final class RawServer: Sendable {
    /// The loopback port of the listener.
    package let port: Int
    private let listener: any Channel
    private let tasks: Accepted

    /// Listens on `port`, or on a free port when it is 0. Passes each connection to `script` and closes it when the script returns or
    /// throws. Rethrows the error of binding the port.
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

    /// Listens and answers every request without a body by passing its head to `answer`; connections are kept open.
    package static func answering(on port: Int = 0, _ answer: @escaping @Sendable (String) -> String) async throws -> RawServer {
        try await start(port: port) { connection in
            while true { try await connection.send(answer(try await connection.read(through: "\r\n\r\n", within: .seconds(60)))) }
        }
    }

    private init(port: Int, listener: any Channel, tasks: Accepted) {
        self.port = port
        self.listener = listener
        self.tasks = tasks
    }

    /// Closes the listener and cancels every script.
    package func stop() async {
        try? await listener.close().get()
        tasks.cancel()
    }
}

/// The running scripts.
private final class Accepted: Sendable {
    private let tasks = Mutex<[Task<Void, Never>]>([])

    func add(_ task: Task<Void, Never>) { tasks.withLock { $0.append(task) } }

    func cancel() { tasks.withLock { $0 }.forEach { $0.cancel() } }
}
