// Connections that the kernel leads to this process, with the address that their clients wanted: after a redirection by
// `SO_ORIGINAL_DST`, after TPROXY as the connection's own address (ip(7); docs/guide/clients.md#transparent).
import Glibc
import NIOCore
import NIOPosix
import RockpoolCore
import RockpoolEngine

/// A client's connection to another machine that arrives here.
enum RedirectedConnection {
    /// The option of netfilter for both families.
    private static let originalDestination: SocketOptionName = 80

    /// Lets a listener accept connections to addresses of other machines, as TPROXY leads them to it. Without the capability `CAP_NET_ADMIN`
    /// nothing changes, and only redirected connections arrive.
    static func admitForeignTargets(on channel: any Channel, host: String) -> EventLoopFuture<Void> {
        guard let options = channel as? any SocketOptionProvider else { return channel.eventLoop.makeSucceededVoidFuture() }
        let isIPv6 = host.contains(":")
        return options.unsafeSetSocketOption(
            level: SocketOptionLevel(isIPv6 ? IPPROTO_IPV6 : IPPROTO_IP), name: isIPv6 ? IPV6_TRANSPARENT : IP_TRANSPARENT, value: CInt(1)
        ).recover { _ in }
    }

    /// True if the client is on this machine, whatever address it has.
    static func isOfThisMachine(_ channel: any Channel) -> Bool {
        // What the kernel redirects to a loopback address comes from this machine.
        if !isForeign(channel) { return channel.localAddress.flatMap { IPAddress($0) }?.meansLoopback == true }
        guard let peer = channel.remoteAddress.flatMap({ IPAddress($0) }) else { return false }
        let devices = (try? System.enumerateDevices()) ?? []
        return devices.contains { $0.address.flatMap { IPAddress($0) } == peer }
    }

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

    /// True if TPROXY led the connection here: its port is not the listener's.
    private static func isForeign(_ channel: any Channel) -> Bool {
        channel.localAddress?.port != channel.parent?.localAddress?.port
    }

    /// The address that the client wanted; nil if it wanted this listener.
    private static func wanted(by channel: any Channel) -> EventLoopFuture<SocketAddress?> {
        let own = channel.localAddress
        if isForeign(channel) { return channel.eventLoop.makeSucceededFuture(own) }
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
