// Limits the number of client connections, in total and per address, and closes idle ones at a limit (docs/security-model.md#connections).
import HeapModule
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

// MARK: - One connection

/// A client connection as the limits see it. It outlives its channel while it rests (docs/security-model.md#idle-connections).
package final class OpenConnection: Sendable {
    private struct Link {
        var channel: (any Channel)?
        var source: IPAddress?
        var account: ClientAccount?
        /// What is under way on this connection, and counts for its account.
        var work = ExchangeCount()
    }

    private let link = Mutex(Link())
    private let openNanoseconds = Atomic<UInt64>(0)
    private let idleNanoseconds = Atomic<UInt64>(0)
    private let closed = Atomic(false)

    /// Returns connections that are not open yet, whose objects lie side by side: among the objects of its channel each would keep a page of
    /// memory while the connection rests.
    static func batch(_ count: Int) -> [OpenConnection] { (0..<count).map { _ in OpenConnection() } }

    private init() {}

    convenience init(_ channel: any Channel, source: IPAddress?) {
        self.init()
        open(on: channel, from: source)
    }

    /// Called once, before the connection is known to others.
    func open(on channel: any Channel, from source: IPAddress?, of account: ClientAccount? = nil) {
        link.withLock { $0 = Link(channel: channel, source: source, account: account) }
        let now = NIODeadline.now().uptimeNanoseconds
        openNanoseconds.store(now, ordering: .relaxed)
        idleNanoseconds.store(now, ordering: .relaxed)
    }

    /// Nil while the connection rests.
    package internal(set) var channel: (any Channel)? {
        get { link.withLock { $0.channel } }
        set { link.withLock { $0.channel = newValue } }
    }
    /// The client, as far as it is known by now; nil where clients share nothing.
    package var account: ClientAccount? { link.withLock { $0.account } }

    /// Notes that the client is known by another account, which takes over what is under way.
    func belongs(to account: ClientAccount) {
        link.withLock { link in
            guard let before = link.account, before !== account else { return }
            before.change(-link.work)
            account.change(link.work)
            link.account = account
        }
    }

    /// Notes something under way that counts for `account`.
    func began(_ kind: ExchangePlace.Kind, of account: ClientAccount) {
        let count = ExchangeCount(kind)
        link.withLock { link in
            link.work += count
            guard let now = link.account, now !== account else { return }
            account.change(-count)
            now.change(count)
        }
    }

    /// Notes the end of something under way.
    func ended(_ kind: ExchangePlace.Kind) {
        let count = -ExchangeCount(kind)
        link.withLock { link in
            link.work += count
            link.account?.change(count)
        }
    }

    /// The ends of the connection as its client has them; empty while it rests.
    var clientEnds: [SystemSocket.Ends] {
        guard let channel, let near = channel.localAddress, let far = channel.remoteAddress, let nearPort = near.port,
            let farPort = far.port,
            let client = far.ipAddress.flatMap({ IPAddress($0) }), let server = near.ipAddress.flatMap({ IPAddress($0) })
        else { return [] }
        return SystemSocket.Ends.ofClient(client, port: farPort, at: server, port: nearPort)
    }
    /// The address that it counts against; nil if it counts against the total only.
    var source: IPAddress? { link.withLock { $0.source } }
    /// In nanoseconds of uptime.
    var openedAt: UInt64 { openNanoseconds.load(ordering: .relaxed) }

    /// In nanoseconds of uptime; the greatest number while it is busy.
    var idleSince: UInt64 { idleNanoseconds.load(ordering: .relaxed) }
    /// False after it was closed, or chosen to be closed at a limit.
    package var isOpen: Bool { !closed.load(ordering: .relaxed) }

    /// Begins something on this connection, which is busy meanwhile.
    /// - Returns: its place; nil where clients share nothing.
    ///
    /// Throws `Refusal` where the client has as much under way as it may.
    package func place(_ kind: ExchangePlace.Kind) throws(Refusal) -> ExchangePlace? {
        if let account {
            guard let place = account.begin(kind, on: self) else { throw .busy }
            noteWork()
            return place
        }
        noteWork()
        return nil
    }

    /// Marks the connection as busy, which protects it from being closed at a limit.
    package func noteWork() { idleNanoseconds.store(.max, ordering: .relaxed) }
    /// Marks the connection as idle, so that it may be closed at a limit.
    package func noteIdle(since now: NIODeadline) { idleNanoseconds.store(now.uptimeNanoseconds, ordering: .relaxed) }
    /// - Returns: true if it was open.
    func noteClosed() -> Bool { !closed.exchange(true, ordering: .relaxed) }
}

// MARK: - The longest idle one

/// Open connections, ordered by a lower bound of the time since when they are idle.
///
/// A connection records each change between busy and idle in an atomic number, without an update of this queue. The queue therefore stores
/// the earliest possible time for each connection. The bound only grows, so if the first connection's bound is still exact, it has been
/// idle longest.
struct ConnectionQueue {
    private struct Place: Comparable {
        let earliest: UInt64
        let connection: OpenConnection

        static func < (a: Place, b: Place) -> Bool { a.earliest < b.earliest }
        static func == (a: Place, b: Place) -> Bool { a.earliest == b.earliest }
    }

    /// Maximum number of outdated places corrected per call: each admission costs the same, however many connections are open.
    static let looks = 64
    private var heap = Heap<Place>()
    private(set) var count = 0
    /// The number of stored places, those of closed connections included.
    var places: Int { heap.count }

    /// Adds an open connection.
    mutating func insert(_ connection: OpenConnection) {
        count += 1
        heap.insert(Place(earliest: connection.openedAt, connection: connection))
    }

    /// Counts a closed connection. Its place is removed when it is found, or when such places outnumber the others by more than `looks`.
    mutating func noteClosed() {
        count -= 1
        if heap.count > 2 * count + Self.looks { heap = Heap(heap.unordered.filter(\.connection.isOpen)) }
    }

    /// Returns the connection that has been idle longest; nil when none is idle, or when the first places examined were all busy.
    /// - Parameter now: nanoseconds of uptime.
    mutating func longestIdle(now: UInt64) -> OpenConnection? {
        for _ in 0..<Self.looks {
            guard let first = heap.min else { return nil }
            let since = first.connection.idleSince
            if !first.connection.isOpen {
                heap.removeMin()
            } else if since <= first.earliest {
                return first.connection
            } else {
                // The connection is busy, or idle since a later time. A place moved to `now` is not examined again at the same moment.
                guard first.earliest < now else { return nil }
                heap.replaceMin(with: Place(earliest: min(since, now), connection: first.connection))
            }
        }
        return nil
    }
}

// MARK: - Rest and drain

/// Keeps the sockets of idle connections (docs/security-model.md#idle-connections).
package protocol ConnectionRest: Sendable {
    /// Closes a connection that was chosen to leave; no effect if it does not rest any more.
    func end(_ connection: OpenConnection)
    /// Closes all connections here, and those that come later.
    func endAll()
}

/// The server is stopping: the connection finishes its current exchange and accepts no new one.
package struct DrainEvent: Sendable {
    package init() {}
}
