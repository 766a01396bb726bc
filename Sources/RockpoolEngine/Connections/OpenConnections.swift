// How many connections clients may have open, all together and from one address, and who makes room (docs/security-model.md#connections).
package import NIOCore
package import RockpoolCore
import Synchronization

/// Counts connections, so that the limits hold over all listeners, and knows them for the drain at the end.
///
/// At a limit the connection that has been idle longest makes room: a crowd that only sits there cannot keep others out. What one
/// address holds against its own limit it has to make room for itself.
package final class OpenConnections: Sendable {
    /// Whether one more may come.
    private enum Room {
        case free
        /// Once this one, the longest idle of those that count against the limit, has left.
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
    ///   - limit: of all connections together.
    ///   - sourceLimit: of those from one address.
    package init(limit: Int, sourceLimit: Int = .max) {
        self.limit = limit
        self.sourceLimit = sourceLimit
    }

    package var count: Int { state.withLock { $0.open.count } }

    /// Nil when a limit is reached and every connection it counts is at work.
    /// - Parameter source: the client's address where its connections are counted; nil where they are not.
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
        // After what it is still being sent, if anything.
        leaving?.channel.pipeline.fireUserInboundEventTriggered(DrainEvent())
        guard isAdmitted else { return nil }
        FreedMemory.process.opened()
        channel.closeFuture.whenComplete { [self] _ in
            state.withLock { $0.remove(connection) }
            FreedMemory.process.ended(1, on: channel.eventLoop)
        }
        return connection
    }

    /// Tells every connection to end after the exchange it is in.
    package func drain() {
        for channel in state.withLock({ $0.open.values.map(\.channel) }) { channel.pipeline.fireUserInboundEventTriggered(DrainEvent()) }
    }

    /// Closes what is still there.
    package func closeAll() {
        for channel in state.withLock({ $0.open.values.map(\.channel) }) { channel.close(promise: nil) }
    }
}

/// The server is stopping: finish what is under way, take nothing new.
package struct DrainEvent: Sendable {}
