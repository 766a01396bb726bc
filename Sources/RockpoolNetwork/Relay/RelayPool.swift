// The connections of one event loop to origins, kept for relayed exchanges (docs/architecture.md#relays).
import NIOCore
import NIOPosix
import NIOSSL
import RockpoolCore
import RockpoolEngine
import Synchronization

/// Connections by origin. A request that finds none idle takes the full path, and one more connection is opened for the next. On the event
/// loop only.
final class RelayPool {
    /// Maximum number of connections to one origin.
    private static let originLimit = 64
    /// Maximum number of connections.
    private static let limit = 256
    /// The time after which an idle connection is closed.
    private static let idleLimit = TimeAmount.seconds(15)
    /// The longest time after a failed attempt during which no other is made; the first is a second.
    private static let longestPause = TimeAmount.seconds(64)
    /// The time for which an origin is not trusted to keep a connection that it has not announced to close, after it has closed one; nor to serve
    /// several, after it was silent on one.
    private static let distrust = TimeAmount.minutes(5)
    private static let sweep = TimeAmount.milliseconds(250)

    private struct Place {
        /// The last one was used last.
        var idle: [RelayConnection] = []
        /// Connections that are open or being opened.
        var count = 0
        var opensFrom = NIODeadline.uptimeNanoseconds(0)
        var pause = TimeAmount.seconds(1)
        /// True if its origin has kept a connection open after a response.
        var isKept = false
        /// Before this, it does not count that it has: it was silent on one.
        var servesSeveralFrom = NIODeadline.uptimeNanoseconds(0)
        /// Before this, no connection is used again for what must not be sent twice.
        var keptFrom = NIODeadline.uptimeNanoseconds(0)
    }

    private let loop: any EventLoop
    /// Runs tasks on the event loop.
    let executor: LoopExecutor
    private let resolver: AddressResolver
    private let contexts: ClientContexts
    private var places: [RelayDestination: Place] = [:]
    private var all: [ObjectIdentifier: RelayConnection] = [:]
    private var opening = 0
    private var sweeping: RepeatedTask?

    init(on loop: any EventLoop, resolver: AddressResolver, contexts: ClientContexts) {
        (self.loop, self.resolver, self.contexts) = (loop, resolver, contexts)
        executor = LoopExecutor(loop)
    }

    /// Takes an idle connection; nil if there is none.
    /// - Parameters:
    ///   - quiet: the longest time for which it may have been idle.
    ///   - timeout: the time to open one; nil to open none.
    func take(to destination: RelayDestination, idleAtMost quiet: TimeSpan? = nil, timeout: TimeSpan?) -> RelayConnection? {
        if quiet != nil, let place = places[destination], place.keptFrom > .now() { return nil }
        while let last = places[destination]?.idle.last,
            quiet.map({ NIODeadline.now() - last.idleSince <= .milliseconds($0.milliseconds) }) ?? true
        {
            places[destination]?.idle.removeLast()
            if last.isQuiet { return last }
            last.close()
        }
        guard let timeout else { return nil }
        // Those that have been idle for too long make room.
        if let place = places[destination], place.count >= Self.originLimit { place.idle.first?.close() }
        open(destination, timeout: timeout)
        return nil
    }

    /// Takes an idle connection; nil if there is none. Opens one for the next request only if the origin is known to keep connections.
    /// - Parameter timeout: the time to open one.
    func take(to destination: RelayDestination, idleAtMost quiet: TimeSpan? = nil, ifKeptWithin timeout: TimeSpan) -> RelayConnection? {
        take(to: destination, idleAtMost: quiet, timeout: places[destination]?.isKept == true ? timeout : nil)
    }

    /// Notes that an origin has kept a connection open after a response.
    func noteKept(_ destination: RelayDestination) {
        guard places.count < Self.limit || places[destination] != nil else { return }
        var place = places[destination] ?? Place()
        place.isKept = place.servesSeveralFrom <= .now()
        places[destination] = place
    }

    /// Notes that an origin was silent on a connection: it may serve one at a time, and that is libcurl's.
    func noteSilent(_ destination: RelayDestination) {
        pause(destination)
        places[destination]?.servesSeveralFrom = .now() + Self.distrust
    }

    /// - Parameter isUsed: true if it has carried an exchange.
    func takeBack(_ connection: RelayConnection, isUsed: Bool) {
        if isUsed { places[connection.destination]?.pause = .seconds(1) }
        places[connection.destination, default: Place()].idle.append(connection)
    }

    func noteClosed(_ connection: RelayConnection) {
        guard all.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
        places[connection.destination]?.idle.removeAll { $0 === connection }
        if connection.isReady { close(connection.destination) } else { fail(connection.destination) }
    }

    /// Notes that a connection broke under a request that must not be sent twice.
    func noteLost(_ destination: RelayDestination) { places[destination, default: Place()].keptFrom = .now() + Self.distrust }

    /// Closes the connections to one origin, or to all. What they carry breaks off.
    func end(to origin: OriginAddress?) {
        for connection in Array(all.values) where origin == nil || connection.destination.origin == origin { connection.drop() }
    }

    /// Closes the idle connections to an origin.
    func endIdle(to origin: OriginAddress) {
        for connection in Array(all.values) where connection.exchange == nil && connection.destination.origin == origin {
            connection.close()
        }
    }

    /// Notes an attempt to open a connection that has failed.
    private func fail(_ destination: RelayDestination) {
        pause(destination)
        close(destination)
    }

    /// Opens no connection for a while: the last attempt has failed, or the origin ends its connections or is silent on them. One that serves
    /// a single connection at a time would wait for a request on one that carries none.
    func pause(_ destination: RelayDestination) {
        let pause = places[destination]?.pause ?? .seconds(1)
        places[destination]?.opensFrom = .now() + pause
        places[destination]?.isKept = false
        places[destination]?.pause = min(pause * 2, Self.longestPause)
    }

    private func close(_ destination: RelayDestination) {
        places[destination]?.count -= 1
        if let place = places[destination], place.count == 0, !place.isKept,
            max(place.opensFrom, place.keptFrom, place.servesSeveralFrom) <= .now()
        {
            places[destination] = nil
        }
        if all.isEmpty, opening == 0 {
            sweeping?.cancel()
            sweeping = nil
        }
    }

    // MARK: opening

    private func open(_ destination: RelayDestination, timeout: TimeSpan) {
        var place = places[destination] ?? Place()
        guard place.count < Self.originLimit, all.count + opening < Self.limit, place.opensFrom <= .now() else { return }
        place.count += 1
        places[destination] = place
        opening += 1
        let (loop, origin) = (loop, destination.origin)
        let addresses = resolver.resolve(origin.host, port: origin.port, loopbackAllowed: true, on: loop)
        contexts.context(for: destination, on: loop).and(addresses).flatMap { context, addresses in
            addresses[...].firstConnected(on: loop) { address in
                ClientBootstrap(group: loop)
                    .channelOption(.autoRead, value: false)
                    .channelOption(.tcpOption(.tcp_nodelay), value: 1)
                    .channelInitializer { channel in
                        channel.eventLoop.makeCompletedFuture {
                            try channel.pipeline.syncOperations.addHandler(UnreadBytes())
                            if let context { try channel.speakTLS(with: origin.host, context: context) }
                        }
                    }
                    .connectTimeout(.milliseconds(timeout.milliseconds))
                    .connect(to: address)
            }
        }.assumeIsolated().whenComplete { [weak self] in self?.opened($0, to: destination) }
    }

    private func opened(_ result: Result<any Channel, any Error>, to destination: RelayDestination) {
        opening -= 1
        let connection = RelayConnection(to: destination, in: self)
        do {
            let channel = try result.get()
            all[ObjectIdentifier(connection)] = connection
            startSweeping()
            try channel.pipeline.syncOperations.addHandler(connection)
        } catch {
            all[ObjectIdentifier(connection)] = nil
            fail(destination)
        }
    }

    // MARK: limits of time

    private func startSweeping() {
        guard sweeping == nil else { return }
        let me = NIOLoopBound(self, eventLoop: loop)
        sweeping = loop.scheduleRepeatedTask(initialDelay: Self.sweep, delay: Self.sweep) { _ in me.value.endOverdue() }
    }

    private func endOverdue() {
        let now = NIODeadline.now()
        for connection in Array(all.values) {
            if let exchange = connection.exchange {
                if !connection.isPaused { exchange.endIfOverdue(at: now) }
            } else if now - connection.idleSince > Self.idleLimit {
                connection.close()
            }
        }
    }
}

/// Where connections of relays lead.
struct RelayDestination: Hashable {
    let origin: OriginAddress
    let tls: TLSSettings

    init(_ request: OutboundRequest) { (origin, tls) = (request.head.origin, request.tls) }
}

/// The TLS contexts of destinations. Each is kept for a while, because it holds over a hundred authorities.
final class ClientContexts: Sendable {
    /// The time after which the files of a context are read again.
    private static let lifetime = TimeAmount.seconds(60)

    private let contexts = Mutex<[TLSSettings: (context: NIOSSLContext, until: NIODeadline)]>([:])

    /// Returns the context of a destination; nil in plaintext.
    func context(for destination: RelayDestination, on loop: any EventLoop) -> EventLoopFuture<NIOSSLContext?> {
        guard destination.origin.scheme == .https else { return loop.makeSucceededFuture(nil) }
        let tls = destination.tls
        if let known = contexts.withLock({ $0[tls] }), .now() < known.until { return loop.makeSucceededFuture(known.context) }
        return tls.clientContext(on: loop).map { context in
            self.contexts.withLock { $0[tls] = (context, .now() + Self.lifetime) }
            return context
        }
    }
}

/// The pools of all event loops.
final class RelayPools: Sendable {
    private let resolver: AddressResolver
    private let contexts = ClientContexts()
    private let pools = Mutex<[ObjectIdentifier: (loop: any EventLoop, pool: NIOLoopBound<RelayPool>)]>([:])

    init(resolver: AddressResolver) { self.resolver = resolver }

    /// Returns the pool of an event loop. Call it on that loop.
    func pool(of loop: any EventLoop) -> RelayPool {
        let bound = pools.withLock { pools in
            if let known = pools[ObjectIdentifier(loop)] { return known.pool }
            let new = NIOLoopBound(RelayPool(on: loop, resolver: resolver, contexts: contexts), eventLoop: loop)
            pools[ObjectIdentifier(loop)] = (loop, new)
            return new
        }
        return bound.value
    }

    /// Closes the idle connections to an origin.
    func endIdle(to origin: OriginAddress) {
        for (loop, pool) in pools.withLock({ Array($0.values) }) { loop.execute { pool.value.endIdle(to: origin) } }
    }

    /// Closes the connections to one origin, or to all, because the network is switched off.
    func end(to origin: OriginAddress?) {
        for (loop, pool) in pools.withLock({ Array($0.values) }) { loop.execute { pool.value.end(to: origin) } }
    }
}
