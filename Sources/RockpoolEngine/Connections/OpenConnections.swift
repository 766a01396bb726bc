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
        var isDraining = false
        private var next: [OpenConnection] = []

        mutating func connection() -> OpenConnection {
            if next.isEmpty { next = OpenConnection.batch(64) }
            return next.removeLast()
        }

        mutating func insert(_ connection: OpenConnection) {
            open[ObjectIdentifier(connection)] = connection
            all.insert(connection)
            if let source = connection.source { bySource[source, default: ConnectionQueue()].insert(connection) }
        }

        mutating func remove(_ connection: OpenConnection) {
            guard connection.noteClosed() else { return }
            open[ObjectIdentifier(connection)] = nil
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

    /// The longest time for which a new connection waits until its client is known: longer than the system needs to say it for thousands of
    /// connections.
    private static let namingLimit = TimeAmount.seconds(2)

    private let state = Mutex(State())
    private let limit: Atomic<Int>
    private let sourceLimit: Atomic<Int>
    private let rest: (any ConnectionRest)?
    /// What clients share; nil where they share nothing.
    package let shares: ClientShares?
    private let lookup: ClientLookup?
    /// When all were looked up last.
    private let lookedAt = Mutex(NIODeadline.distantPast)

    /// - Parameters:
    ///   - limit: the maximum number of connections in total.
    ///   - sourceLimit: the maximum number of connections from one address.
    ///   - rest: where idle connections are without a channel; nil if they always have one.
    ///   - shares: what clients share.
    ///   - find: asks the system who is behind connections of this machine.
    package init(
        limit: Int, sourceLimit: Int = .max, rest: (any ConnectionRest)? = nil, shares: ClientShares? = nil,
        find: @escaping ClientLookup.Finder = { SocketOwners.clients(of: $0) }
    ) {
        self.limit = Atomic(limit)
        self.sourceLimit = Atomic(sourceLimit)
        self.rest = rest
        self.shares = shares
        lookup = shares.map { ClientLookup($0, find: find) }
        shares?.onPressure { [weak self] isRefused in self?.lookUpAll(after: isRefused ? .milliseconds(100) : .seconds(1)) }
    }

    /// Asks the system about all clients of this machine whose processes are not known.
    /// - Parameter pause: The shortest time since it was last asked about all.
    private func lookUpAll(after pause: TimeAmount, now: NIODeadline = .now()) {
        let isDue = lookedAt.withLock { last in
            guard now - last >= pause else { return false }
            last = now
            return true
        }
        if isDue { lookup?.ask(about: state.withLock { Array($0.open.values) }.filter { $0.account?.mayBeNamed == true }) }
    }

    /// Asks the system which process is behind a new connection, where it matters.
    /// - Returns: nil if the connection may begin at once.
    package func naming(_ connection: OpenConnection, on loop: any EventLoop) -> EventLoopFuture<Void>? {
        guard let shares, let lookup, shares.arePressed, connection.account?.mayBeNamed == true else { return nil }
        let named = loop.makePromise(of: Void.self)
        // Whichever comes first.
        let isDone = Atomic(false)
        let limit = loop.scheduleTask(in: Self.namingLimit) { if !isDone.exchange(true, ordering: .relaxed) { named.succeed() } }
        lookup.ask(about: [connection]) {
            limit.cancel()
            if !isDone.exchange(true, ordering: .relaxed) { named.succeed() }
        }
        return named.futureResult
    }

    /// Changes the limits for connections that are opened from now on.
    package func setLimits(total: Int, perAddress: Int) {
        limit.store(total, ordering: .relaxed)
        sourceLimit.store(perAddress, ordering: .relaxed)
    }

    package var count: Int { state.withLock { $0.open.count } }

    /// Registers a connection. Returns nil when a limit is reached and no idle connection was found to close.
    /// - Parameters:
    ///   - source: the client's address; nil where connections are not counted by address.
    ///   - client: the client as far as it is known.
    package func admit(_ channel: any Channel, from source: IPAddress? = nil, client: ClientID = .unknown) -> OpenConnection? {
        let account = shares?.account(of: client)
        let (admitted, leaving) = state.withLock { state -> (OpenConnection?, OpenConnection?) in
            let connection = state.connection()
            connection.open(on: channel, from: source, of: account)
            var leaving: OpenConnection?
            switch state.room(
                for: source, limit: limit.load(ordering: .relaxed), sourceLimit: sourceLimit.load(ordering: .relaxed),
                now: connection.openedAt)
            {
            case .none: return (nil, nil)
            case .free: break
            case .after(let longestIdle):
                state.remove(longestIdle)
                leaving = longestIdle
            }
            state.insert(connection)
            return (connection, leaving)
        }
        if let leaving {
            // The connection first finishes the response that it is still sending, if any.
            if let channel = leaving.channel { channel.pipeline.fireUserInboundEventTriggered(DrainEvent()) } else { rest?.end(leaving) }
        }
        guard let admitted else { return nil }
        watch(admitted, on: channel)
        return admitted
    }

    private func watch(_ connection: OpenConnection, on channel: any Channel) {
        FreedMemory.process.opened()
        channel.closeFuture.whenComplete { [self] _ in
            // A connection that rests has left its channel.
            if connection.channel === channel { ended(connection) }
            FreedMemory.process.ended(1, on: channel.eventLoop)
        }
    }

    /// Notes that a connection has closed; no effect on one that has closed before.
    package func ended(_ connection: OpenConnection) { state.withLock { $0.remove(connection) } }

    /// Notes that a connection goes on without its channel, which is about to be closed.
    /// - Returns: false if the connection is to close.
    package func rests(_ connection: OpenConnection) -> Bool {
        state.withLock { state in
            guard connection.isOpen, !state.isDraining else { return false }
            connection.channel = nil
            return true
        }
    }

    /// Notes that a connection has rested, and goes on with `channel`.
    /// - Returns: false if the connection is to close, without an answer to what its client has sent.
    package func resumes(_ connection: OpenConnection, on channel: any Channel) -> Bool {
        let goesOn = state.withLock { state in
            guard connection.isOpen, !state.isDraining else { return false }
            connection.channel = channel
            return true
        }
        if goesOn { watch(connection, on: channel) }
        return goesOn
    }

    /// Notifies every connection to close after its current exchange. Those that rest are closed.
    package func drain() {
        let open = state.withLock { state in
            state.isDraining = true
            return Array(state.open.values)
        }
        for channel in open.compactMap(\.channel) { channel.pipeline.fireUserInboundEventTriggered(DrainEvent()) }
        rest?.endAll()
    }

    /// Closes every remaining connection.
    package func closeAll() {
        for connection in state.withLock({ Array($0.open.values) }) { connection.channel?.close(promise: nil) }
    }
}
