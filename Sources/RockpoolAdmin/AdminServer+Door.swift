// One listener of the admin API: it filters clients, limits the number of connections, and accepts none while descriptors are scarce
// (docs/security-model.md#connections).
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import RockpoolCore
import RockpoolEngine

extension AdminServer {
    /// Serves at `address`.
    /// - Parameter onRunning: called with the listening channel once it accepts.
    func application(
        at address: BindAddress, onRunning: @escaping @Sendable (any Channel) async -> Void
    ) -> Application<RouterResponder<AdminContext>> {
        let (timeouts, allowed, descriptors) = (timeouts, allowed, descriptors)
        let connections = OpenConnections(limit: descriptors.budget.adminConnections)
        return Application(
            responder: router().buildResponder(),
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

    /// The logger for the framework, which only passes critical messages.
    private var quiet: Logger {
        var logger = logger
        logger.logLevel = .critical
        return logger
    }
}
