// The context of an admin request: its connection, and the way it came.
import Hummingbird
import NIOCore
import RockpoolCore

struct AdminContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// True if the request came through the owner's socket, where no token is needed.
    let isThroughSocket: Bool
    /// True if the client runs on this machine.
    let isLocal: Bool
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        coreContext = .init(source: source)
        channel = source.channel
        isLocal = channel.clientAddress?.meansLoopback ?? true
        isThroughSocket = channel.isOwnersSocket
    }
}
