// What every connection of a listener shares: the engine, the limits, the way to tunnels.
import Logging
import NIOCore
import RockpoolCore
import RockpoolEngine
import Synchronization

/// Shared by the connections of one listener.
struct ConnectionService: Sendable {
    let engine: Engine
    let resolution: TargetResolution
    let timeouts: ClientTimeouts
    let limits: ClientLimits
    /// Our name in `Via`, unique per instance.
    let viaName: String
    let dialer: TunnelDialer
    let open: OpenConnections
    let logger: Logger
}

/// Counts connections, so that the limit holds over all listeners, and knows them for the drain at the end.
package final class OpenConnections: Sendable {
    private let channels = Mutex<[ObjectIdentifier: any Channel]>([:])
    private let limit: Int

    package init(limit: Int) { self.limit = limit }

    package var count: Int { channels.withLock { $0.count } }

    /// False when the limit is reached.
    func admit(_ channel: any Channel) -> Bool {
        let isAdmitted = channels.withLock {
            guard $0.count < limit else { return false }
            $0[ObjectIdentifier(channel)] = channel
            return true
        }
        if isAdmitted {
            channel.closeFuture.whenComplete { [self] _ in channels.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(channel)) } }
        }
        return isAdmitted
    }

    /// Tells every connection to end after the exchange it is in.
    package func drain() {
        for channel in channels.withLock({ Array($0.values) }) { channel.pipeline.fireUserInboundEventTriggered(DrainEvent()) }
    }

    /// Closes what is still there.
    package func closeAll() {
        for channel in channels.withLock({ Array($0.values) }) { channel.close(promise: nil) }
    }
}

/// The server is stopping: finish what is under way, take nothing new.
struct DrainEvent: Sendable {}
