// What the admin API knows of a request beside its head: whether it came through the owner's socket.
import Hummingbird
import NIOCore
import RockpoolCore

/// The context of one admin request.
struct AdminContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// Through the owner's socket: no token needed.
    let isThroughSocket: Bool
    /// From this machine.
    let isLocal: Bool
    /// The connection.
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        coreContext = .init(source: source)
        channel = source.channel
        isLocal = channel.remoteAddress?.ipAddress.flatMap { IPAddress($0) }.map(\.meansLoopback) ?? true
        isThroughSocket = channel.isOwnersSocket
    }
}
