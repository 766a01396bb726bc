// Which of libcurl's connections carry a transfer, and which wait in its pool for the next one (RFC 9112 §9.3).
import CCurl
import RockpoolCore

/// The two ends of a TCP connection. No other open connection has the same.
struct ConnectionEnds: Hashable, Sendable {
    let localAddress: String
    let localPort: Int32
    let remoteAddress: String
    let remotePort: Int32
}

/// Counts the transfers on each connection from the moment libcurl gives it to one. The event loop's table does not tell that: while a
/// transfer is paused, libcurl waits at no socket for it.
struct PooledConnections {
    private var users: [ConnectionEnds: Int] = [:]
    private var idle: [ConnectionEnds: curl_socket_t] = [:]
    private var idleSockets: [curl_socket_t: (connection: ConnectionEnds, origin: OriginAddress)] = [:]

    /// A transfer gets the connection, in place of `former` where libcurl sends it again.
    /// - Returns: the connection's socket if it was idle; it is no longer to be watched.
    mutating func take(_ connection: ConnectionEnds, insteadOf former: ConnectionEnds? = nil) -> curl_socket_t? {
        if let former { release(former) }
        users[connection, default: 0] += 1
        guard let socket = idle.removeValue(forKey: connection) else { return nil }
        idleSockets[socket] = nil
        return socket
    }

    /// A transfer has ended.
    /// - Parameters:
    ///   - origin: where the connection leads.
    ///   - socket: that of its connection, where libcurl keeps it for a next request; nil where it does not.
    /// - Returns: whether the connection is idle now; its socket is to be watched.
    mutating func leave(_ connection: ConnectionEnds, to origin: OriginAddress, keeping socket: curl_socket_t?) -> Bool {
        release(connection)
        guard let socket, users[connection] == nil else { return false }
        idle[connection] = socket
        idleSockets[socket] = (connection, origin)
        return true
    }

    /// The socket is closed, or no longer good for anything.
    /// - Returns: whether it was that of an idle connection.
    mutating func forget(_ socket: curl_socket_t) -> Bool {
        guard let known = idleSockets.removeValue(forKey: socket) else { return false }
        idle[known.connection] = nil
        return true
    }

    /// The sockets of idle connections to an origin, to any when nil.
    func idleSockets(to origin: OriginAddress?) -> [curl_socket_t] {
        idleSockets.filter { origin == nil || $0.value.origin == origin }.map(\.key)
    }

    func isIdle(_ socket: curl_socket_t) -> Bool { idleSockets[socket] != nil }

    private mutating func release(_ connection: ConnectionEnds) {
        guard let count = users[connection] else { return }
        users[connection] = count > 1 ? count - 1 : nil
    }
}
