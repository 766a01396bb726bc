// The use of libcurl's connections: running a transfer, or idle in the pool (RFC 9112 §9.3).
import CCurl
import RockpoolCore

/// The two ends of a TCP connection, unique among open connections.
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
