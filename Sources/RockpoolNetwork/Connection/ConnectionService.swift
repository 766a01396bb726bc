// What every connection of a listener shares: the engine, the limits, the way to tunnels.
import Logging
import NIOCore
import OrderedCollections
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
///
/// At the limit the connection that has been idle longest makes room: a crowd that only sits there cannot keep others out.
package final class OpenConnections: Sendable {
    private struct State {
        var channels: [ObjectIdentifier: any Channel] = [:]
        /// Between requests, longest first.
        var idle: OrderedSet<ObjectIdentifier> = []
    }

    private let state = Mutex(State())
    private let limit: Int

    package init(limit: Int) { self.limit = limit }

    package var count: Int { state.withLock { $0.channels.count } }

    /// False when the limit is reached and every connection is at work.
    func admit(_ channel: any Channel) -> Bool {
        let id = ObjectIdentifier(channel)
        let (isAdmitted, leaving) = state.withLock { state -> (Bool, (any Channel)?) in
            var leaving: (any Channel)?
            if state.channels.count >= limit {
                guard !state.idle.isEmpty else { return (false, nil) }
                leaving = state.channels.removeValue(forKey: state.idle.removeFirst())
            }
            state.channels[id] = channel
            state.idle.append(id)
            return (true, leaving)
        }
        leaving?.close(promise: nil)
        if isAdmitted {
            channel.closeFuture.whenComplete { [self] _ in
                state.withLock { state in
                    state.channels[id] = nil
                    state.idle.remove(id)
                }
            }
        }
        return isAdmitted
    }

    /// Notes whether a connection is between requests.
    func note(_ channel: any Channel, isIdle: Bool) {
        let id = ObjectIdentifier(channel)
        state.withLock { state in
            if !isIdle { state.idle.remove(id) } else if state.channels[id] != nil { state.idle.append(id) }
        }
    }

    /// Tells every connection to end after the exchange it is in.
    package func drain() {
        for channel in state.withLock({ Array($0.channels.values) }) { channel.pipeline.fireUserInboundEventTriggered(DrainEvent()) }
    }

    /// Closes what is still there.
    package func closeAll() {
        for channel in state.withLock({ Array($0.channels.values) }) { channel.close(promise: nil) }
    }
}

/// The server is stopping: finish what is under way, take nothing new.
struct DrainEvent: Sendable {}
