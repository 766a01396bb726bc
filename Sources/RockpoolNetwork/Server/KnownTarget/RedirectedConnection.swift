// Connections that the kernel has redirected to this process, with the address that their clients wanted (`SO_ORIGINAL_DST`, ip(7);
// docs/guide/clients.md#transparent).
import Glibc
import NIOCore
import NIOPosix
import RockpoolCore
import RockpoolEngine

/// A client's connection to another machine that arrives here.
enum RedirectedConnection {
    /// The option of netfilter for both families.
    private static let originalDestination: SocketOptionName = 80

    /// Installs the handlers for the address that the client wanted. Connections that were not redirected are closed.
    static func begin(on channel: any Channel, service: ConnectionService, open: OpenConnection?) -> EventLoopFuture<Void> {
        let opened = NIOLoopBound(open, eventLoop: channel.eventLoop)
        return wanted(by: channel).flatMapThrowing { address in
            guard let address, let port = address.port, port > 0, let host = IPAddress(address)?.description else {
                return channel.close(promise: nil)
            }
            try enter(KnownTarget(host: host, port: port, service: service), on: channel, open: opened.value)
        }.flatMapErrorThrowing { _ in channel.close(promise: nil) }
    }

    private static func enter(_ target: KnownTarget, on channel: any Channel, open: OpenConnection?) throws {
        // A tunnel is opened by the first bytes too, so that a client that sends nothing causes no connection.
        _ = try target.course()
        try channel.pipeline.syncOperations.addHandler(FirstBytesHandler(target, open: open))
    }

    /// The address before the redirection; nil if there was none.
    private static func wanted(by channel: any Channel) -> EventLoopFuture<SocketAddress?> {
        let own = channel.localAddress
        guard let options = channel as? any SocketOptionProvider, let own else { return channel.eventLoop.makeSucceededFuture(nil) }
        let found: EventLoopFuture<SocketAddress> =
            if case .v6 = own {
                options.unsafeGetSocketOption(level: SocketOptionLevel(IPPROTO_IPV6), name: originalDestination)
                    .map { (address: sockaddr_in6) in SocketAddress(address) }
            } else {
                options.unsafeGetSocketOption(level: SocketOptionLevel(IPPROTO_IP), name: originalDestination)
                    .map { (address: sockaddr_in) in SocketAddress(address) }
            }
        return found.map { $0 == own ? nil : $0 }
    }
}
