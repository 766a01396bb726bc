// The production `Origin`: passes requests to the one thread that runs libcurl (docs/architecture.md#parts *upstream*).
import CCurl
package import Logging
import NIOCore
package import RockpoolCore
package import RockpoolEngine
import Synchronization

/// Sends requests to upstreams with libcurl: pooled connections, verified TLS, the target's bytes unchanged.
package final class CurlOrigin: Origin {
    private let thread: CurlThread
    private let addresses: AddressPolicy
    private let ownPorts: OwnPorts

    /// - Parameters:
    ///   - addresses: the policy that each resolved address must pass at each connection attempt.
    ///   - ownPorts: the proxy's own listeners, never connected to on this machine.
    ///   - connections: the limit for all upstreams together, idle connections included; further transfers wait.
    ///   - poolLimit: the time after the last transfer at which idle connections are closed.
    /// - Throws: when libcurl or the kernel refuses a handle.
    package init(
        addresses: AddressPolicy, ownPorts: OwnPorts, connections: Int = 4096, poolLimit: Duration = .seconds(60), logger: Logger
    ) throws {
        self.thread = try CurlThread(connectionLimit: connections, poolLimit: poolLimit, logger: logger)
        self.addresses = addresses
        self.ownPorts = ownPorts
        thread.start()
    }

    package func send(_ request: OutboundRequest) async throws(TransferFailure) -> OriginReply {
        if request.via != nil, !request.isDeclared,
            let refusal = addresses.refusal(ofTarget: request.head.origin.host, loopbackAllowed: request.allowsLoopback)
        {
            throw TransferFailure(kind: .denied, sent: .no, detail: refusal)
        }
        let transfer = Transfer(request: request, addresses: addresses, ownPorts: ownPorts)
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                transfer.answered = { continuation.resume(returning: $0) }
                thread.submit(.start(transfer))
            }
        } onCancel: {
            thread.submit(.cancel(transfer))
        }
        return try outcome.get()
    }

    package func endTransfers(to origin: OriginAddress?) { thread.submit(.end(origin)) }

    package func distrustKept(to origin: OriginAddress) { thread.submit(.distrust(origin)) }

    /// Stops the thread; running transfers fail as cancelled.
    package func close() { thread.submit(.stop) }
}

/// The two ends of a TCP connection, unique among open connections (RFC 9112 §9.3).
struct ConnectionEnds: Hashable, Sendable {
    let localAddress: String
    let localPort: Int32
    let remoteAddress: String
    let remotePort: Int32
}

/// Counts the transfers on each connection from the moment libcurl assigns it. The set of watched sockets does not show that, because
/// libcurl watches no socket for a paused transfer.
struct PooledConnections {
    private var users: [ConnectionEnds: Int] = [:]
    private var idle: [ConnectionEnds: curl_socket_t] = [:]
    private var idleSockets: [curl_socket_t: (connection: ConnectionEnds, origin: OriginAddress)] = [:]

    /// Assigns the connection to a transfer, in place of `former` where libcurl resends the request.
    /// - Returns: the connection's socket if it was idle; it must no longer be watched.
    mutating func take(_ connection: ConnectionEnds, insteadOf former: ConnectionEnds? = nil) -> curl_socket_t? {
        if let former { release(former) }
        users[connection, default: 0] += 1
        guard let socket = idle.removeValue(forKey: connection) else { return nil }
        idleSockets[socket] = nil
        return socket
    }

    /// Records the end of a transfer.
    /// - Parameters:
    ///   - origin: the origin of the connection.
    ///   - socket: the connection's socket, where libcurl keeps it for a next request; nil where it does not.
    /// - Returns: true if the connection is idle now; its socket must be watched.
    mutating func leave(_ connection: ConnectionEnds, to origin: OriginAddress, keeping socket: curl_socket_t?) -> Bool {
        release(connection)
        guard let socket, users[connection] == nil else { return false }
        idle[connection] = socket
        idleSockets[socket] = (connection, origin)
        return true
    }

    /// Removes a socket that is closed or unusable.
    /// - Returns: true if it belonged to an idle connection.
    mutating func forget(_ socket: curl_socket_t) -> Bool {
        guard let known = idleSockets.removeValue(forKey: socket) else { return false }
        idle[known.connection] = nil
        return true
    }

    /// Returns the sockets of idle connections to an origin, to any when nil.
    func idleSockets(to origin: OriginAddress?) -> [curl_socket_t] {
        idleSockets.filter { origin == nil || $0.value.origin == origin }.map(\.key)
    }

    func isIdle(_ socket: curl_socket_t) -> Bool { idleSockets[socket] != nil }

    private mutating func release(_ connection: ConnectionEnds) {
        guard let count = users[connection] else { return }
        users[connection] = count > 1 ? count - 1 : nil
    }
}

/// Remembers when a kept connection of an origin was silent: those from before are not used again.
struct ConnectionTrust {
    /// The time after which libcurl uses no idle connection again anyway, with some to spare (CURLOPT_MAXAGE_CONN).
    private static let limit = Duration.seconds(180)

    private var since: [OriginAddress: ContinuousClock.Instant] = [:]

    mutating func distrust(_ origin: OriginAddress, at now: ContinuousClock.Instant) {
        since = since.filter { now - $0.value < Self.limit }
        since[origin] = now
    }

    /// Returns the highest age in whole seconds of a connection that may be used again: nil for any, 0 for none. libcurl counts whole seconds
    /// too, so that a connection of the second before is not used either.
    func longestAge(to origin: OriginAddress, at now: ContinuousClock.Instant) -> Int? {
        guard let since = since[origin], now - since < Self.limit else { return nil }
        return max(0, Int((now - since).components.seconds) - 1)
    }
}

/// Ports of the process's own listeners, added as each is bound.
package final class OwnPorts: Sendable {
    /// The number of listeners at each: they may have different addresses.
    private let ports = Mutex<[Int: Int]>([:])

    package init() {}

    package func insert(_ port: Int) { ports.withLock { $0[port, default: 0] += 1 } }
    /// Notes that a listener was closed.
    package func remove(_ port: Int) {
        ports.withLock { ports in
            let left = (ports[port] ?? 0) - 1
            ports[port] = left > 0 ? left : nil
        }
    }

    package func contains(_ port: Int) -> Bool { ports.withLock { $0[port] != nil } }
}
