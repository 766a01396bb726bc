// The connections of relays, by event loop (docs/architecture.md#relays).
import NIOCore
import NIOSSL
import RockpoolCore
import RockpoolEngine
import Synchronization

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
