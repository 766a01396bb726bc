// The open tunnels and upgraded connections, so that they can be closed (docs/reference/behaviour.md#network-switch `/v1/network`).
import NIOCore
import RockpoolCore
import Synchronization

/// The far sides of the tunnels of one server.
final class OpenTunnels: Sendable {
    private let channels = Mutex<[ObjectIdentifier: (channel: any Channel, origin: OriginAddress)]>([:])

    var count: Int { channels.withLock(\.count) }

    /// Tracks a far side until it closes.
    func add(_ channel: any Channel, to origin: OriginAddress) {
        let key = ObjectIdentifier(channel)
        channels.withLock { $0[key] = (channel, origin) }
        channel.closeFuture.whenComplete { _ in self.channels.withLock { _ = $0.removeValue(forKey: key) } }
    }

    /// Closes the tunnels to the host and port of `origin`, all of them when nil.
    func end(to origin: OriginAddress?) {
        let open = channels.withLock { channels in
            channels.values.filter { origin == nil || ($0.origin.host == origin?.host && $0.origin.port == origin?.port) }.map(\.channel)
        }
        for channel in open { channel.close(promise: nil) }
    }
}
