// The Unix socket alone, for a command that works on the stores of a stopped server.
import Glibc
import Hummingbird

extension AdminServer {
    /// Serves on the socket while `body` runs, then removes it. Throws the error of `body`, or the reason why the socket cannot be made.
    package func servingSocket<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
        let door = door
        try door.checkSocketPath()
        unsafe unlink(socketPath)
        let (path, (opened, open)) = (socketPath, AsyncStream.makeStream(of: Void.self))
        let socket = door.application(for: router(), at: .unixDomainSocket(path: path)) { _ in
            unsafe chmod(path, 0o600)
            open.yield()
        }
        defer { unsafe unlink(path) }
        let server = Task {
            // Ends the wait below if the socket cannot be opened.
            defer { open.finish() }
            try await socket.run()
        }
        var iterator = opened.makeAsyncIterator()
        guard await iterator.next() != nil else {
            try await server.value
            throw AdminFailure("cannot listen on \(path)")
        }
        do {
            let value = try await body()
            server.cancel()
            _ = await server.result
            return value
        } catch {
            server.cancel()
            _ = await server.result
            throw error
        }
    }
}
