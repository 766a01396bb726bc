// The two listeners of an administrative API, a TCP port and a Unix socket: they filter clients, limit the number of connections, and
// accept none while descriptors are scarce (docs/security-model.md#connections).
import Glibc
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import RockpoolCore
import RockpoolEngine

/// Serves a router at both listeners.
struct AdminDoor: Sendable {
    /// The limit of `sockaddr_un` in bytes, without the closing NUL.
    private static let longestSocketPath = 107

    /// Where the Unix socket is made; a stale one is replaced.
    let socketPath: String
    /// True if the group of the server may use the socket too.
    let isForGroup: Bool
    let timeouts: ClientTimeouts
    /// The networks whose clients may connect to the TCP port, beside those on this machine.
    let allowed: [CIDR]
    let descriptors: DescriptorGauge
    let logger: Logger

    /// Serves until one of the listeners ends, which ends both.
    /// - Parameters:
    ///   - listen: `host:port` of the TCP port.
    ///   - onBound: called with the bound address once both listeners are open.
    func serve(
        _ router: Router<AdminContext>, at listen: String, onBound: @escaping @Sendable (HostAndPort) -> Void
    ) async throws {
        try checkSocketPath()
        guard let place = HostAndPort(listen) else { throw AdminFailure("\(listen) is not host:port") }
        makeSocketDirectory()
        unsafe unlink(socketPath)
        // `connect` needs the right to write.
        let (path, mode) = (socketPath, mode_t(isForGroup ? 0o660 : 0o600))
        let (socketOpen, opened) = AsyncStream.makeStream(of: Void.self)
        let socket = application(for: router, at: .unixDomainSocket(path: path)) { _ in
            unsafe chmod(path, mode)
            opened.finish()
        }
        let tcp = application(for: router, at: .hostname(place.host, port: place.port)) { channel in
            var address = place
            address.port = channel.localAddress?.port ?? place.port
            for await _ in socketOpen {}
            if !Task.isCancelled { onBound(address) }
        }
        try await withThrowingTaskGroup { group in
            group.addTask { try await socket.run() }
            group.addTask { try await tcp.run() }
            do {
                try await group.next()
            } catch let error as IOError {
                let cause = error.errnoCode == EADDRINUSE ? PortOwner.words(forPort: place.port) : "\(error)"
                throw AdminFailure("cannot listen on \(listen): \(cause)")
            }
            group.cancelAll()
        }
    }

    /// Serves at one address.
    /// - Parameter onRunning: called with the listening channel once it accepts.
    func application(
        for router: Router<AdminContext>, at address: BindAddress, onRunning: @escaping @Sendable (any Channel) async -> Void
    ) -> Application<RouterResponder<AdminContext>> {
        let (timeouts, allowed, descriptors) = (timeouts, allowed, descriptors)
        let connections = OpenConnections(limit: descriptors.budget.adminConnections)
        return Application(
            responder: router.buildResponder(),
            server: HTTPServerBuilder { responder in
                AdminChannel(http: HTTP1Channel(responder: responder), connections: connections, timeouts: timeouts, allowed: allowed)
            },
            configuration: ApplicationConfiguration(address: address, serverName: "rockpool"),
            onServerRunning: { channel in
                try? await channel.eventLoop.submit {
                    try channel.pipeline.syncOperations.addHandler(AcceptGate(descriptors), position: .first)
                }.get()
                await onRunning(channel)
            },
            logger: quiet)
    }

    /// Throws `AdminFailure` if the path is too long for a socket.
    func checkSocketPath() throws(AdminFailure) {
        guard socketPath.utf8.count <= Self.longestSocketPath else {
            throw AdminFailure(
                "\(socketPath) is too long for a Unix socket (\(Self.longestSocketPath) bytes); choose a shorter admin.socket or storage.state_dir"
            )
        }
    }

    /// The socket's directory may be missing, as `$XDG_RUNTIME_DIR/rockpool`. A failure shows when the socket is bound.
    private func makeSocketDirectory() {
        let directory = socketPath.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
        unsafe mkdir(directory, isForGroup ? 0o755 : 0o700)
    }

    /// The logger for the framework, which only passes critical messages.
    private var quiet: Logger {
        var logger = logger
        logger.logLevel = .critical
        return logger
    }
}
