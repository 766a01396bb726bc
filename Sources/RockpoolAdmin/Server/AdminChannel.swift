// The framework's channel setup for an accepted admin connection, with our check of the client's address and our time and count limits
// added (docs/security-model.md#clients-that-may-connect, docs/security-model.md#slow-clients).
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import RockpoolCore
import RockpoolEngine

/// Sets up the accepted connections of one listener of the admin API.
struct AdminChannel: ServerChildChannel {
    typealias Value = HTTP1Channel.Value

    let http: HTTP1Channel
    let connections: OpenConnections
    let timeouts: ClientTimeouts
    /// The networks whose clients may connect; clients on this machine may always.
    let allowed: [CIDR]

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        guard channel.isOwnersSocket || channel.clientAddress.map(allowed.admits) == true, let open = connections.admit(channel) else {
            channel.close(promise: nil)
            return channel.eventLoop.makeFailedFuture(ChannelError.ioOnClosedChannel)
        }
        let (timeouts, rate) = (timeouts, ClientLimits().bodyRate)
        let ready = http.setup(channel: channel, logger: logger).flatMapThrowing { value -> Value in
            let pipeline = channel.pipeline.syncOperations
            let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
            let connection = AdminConnection(
                open: open, timeouts: timeouts, bodyRate: rate, boundsBodies: !channel.isOwnersSocket)
            try pipeline.addHandler(connection, position: .after(decoder))
            return value
        }
        // The framework does not close a channel after its setup failed.
        ready.whenFailure { _ in channel.close(promise: nil) }
        return ready
    }

    func handle(value: Value, logger: Logger) async { await http.handle(value: value, logger: logger) }
}

extension Channel {
    /// The address of the client; nil on a Unix socket.
    var clientAddress: IPAddress? { remoteAddress?.ipAddress.flatMap { IPAddress($0) } }

    /// True if the connection came through the Unix socket in the state directory, which only the owner can open (mode 0600).
    var isOwnersSocket: Bool {
        if case .unixDomainSocket = localAddress { true } else { false }
    }
}
