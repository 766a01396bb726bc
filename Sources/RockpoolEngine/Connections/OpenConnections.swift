// Limits the number of client connections, in total and per address, and closes idle ones at a limit (docs/security-model.md#connections).
package import NIOCore
package import RockpoolCore
import Synchronization

/// Counts the connections of all listeners together, and holds them for the drain at shutdown.
///
/// At a limit the connection that has been idle longest is closed, so that many idle connections cannot keep other clients out. At the
/// limit of one address, a connection of the same address is closed.
package final class OpenConnections: Sendable {
    /// The result of checking the limits for a new connection.
    private enum Room {
        case free
        /// There is space once this connection has closed: the longest idle one of those that count against the limit.
        case after(OpenConnection)
        case none
    }

    private struct State {
        var open: [ObjectIdentifier: OpenConnection] = [:]
        var all = ConnectionQueue()
        var bySource: [IPAddress: ConnectionQueue] = [:]

        mutating func insert(_ connection: OpenConnection) {
            open[ObjectIdentifier(connection.channel)] = connection
            all.insert(connection)
            if let source = connection.source { bySource[source, default: ConnectionQueue()].insert(connection) }
        }

        mutating func remove(_ connection: OpenConnection) {
            guard connection.noteClosed() else { return }
            open[ObjectIdentifier(connection.channel)] = nil
            all.noteClosed()
            guard let source = connection.source else { return }
            bySource[source]?.noteClosed()
            if bySource[source]?.count == 0 { bySource[source] = nil }
        }

        mutating func room(for source: IPAddress?, limit: Int, sourceLimit: Int, now: UInt64) -> Room {
            if let source, let held = bySource[source]?.count, held >= sourceLimit {
                return bySource[source]?.longestIdle(now: now).map { .after($0) } ?? .none
            }
            if open.count >= limit { return all.longestIdle(now: now).map { .after($0) } ?? .none }
            return .free
        }
    }

    private let state = Mutex(State())
    private let limit: Int
    private let sourceLimit: Int

    /// - Parameters:
    ///   - limit: the maximum number of connections in total.
    ///   - sourceLimit: the maximum number of connections from one address.
    package init(limit: Int, sourceLimit: Int = .max) {
        self.limit = limit
        self.sourceLimit = sourceLimit
    }

    package var count: Int { state.withLock { $0.open.count } }

    /// Registers a connection. Returns nil when a limit is reached and no idle connection was found to close.
    /// - Parameter source: the client's address; nil where connections are not counted by address.
    package func admit(_ channel: any Channel, from source: IPAddress? = nil) -> OpenConnection? {
        let connection = OpenConnection(channel, source: source)
        let (isAdmitted, leaving) = state.withLock { state -> (Bool, OpenConnection?) in
            var leaving: OpenConnection?
            switch state.room(for: source, limit: limit, sourceLimit: sourceLimit, now: connection.openedAt) {
            case .none: return (false, nil)
            case .free: break
            case .after(let longestIdle):
                state.remove(longestIdle)
                leaving = longestIdle
            }
            state.insert(connection)
            return (true, leaving)
        }
        // The connection first finishes the response that it is still sending, if any.
        leaving?.channel.pipeline.fireUserInboundEventTriggered(DrainEvent())
        guard isAdmitted else { return nil }
        FreedMemory.process.opened()
        channel.closeFuture.whenComplete { [self] _ in
            state.withLock { $0.remove(connection) }
            FreedMemory.process.ended(1, on: channel.eventLoop)
        }
        return connection
    }

    /// Notifies every connection to close after its current exchange.
    package func drain() {
        for channel in state.withLock({ $0.open.values.map(\.channel) }) { channel.pipeline.fireUserInboundEventTriggered(DrainEvent()) }
    }

    /// Closes every remaining connection.
    package func closeAll() {
        for channel in state.withLock({ $0.open.values.map(\.channel) }) { channel.close(promise: nil) }
    }
}
