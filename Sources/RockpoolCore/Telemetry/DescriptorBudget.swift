// The division of the process's descriptor limit, so that no component runs out of descriptors (getrlimit(2), RLIMIT_NOFILE).

/// Shares of the limit on open descriptors, for any limit.
///
/// Every share but the reserve is bounded: the process's own descriptors, the listeners' connections, and for each connection to an
/// upstream an additional file. Where limits are small, the reserve has space for a file, or the far side of a tunnel, for each client.
package struct DescriptorBudget: Hashable, Sendable {
    /// Descriptors the process may have open at once.
    package let limit: Int

    /// - Parameter limit: the system's limit; a value beyond 2^24 is treated as 2^24.
    package init(limit: Int) { self.limit = min(max(0, limit), Self.largestCount) }
    private static let largestCount = 1 << 24

    /// The budget of commands and tests, which serve no clients.
    package static let unlimited = DescriptorBudget(limit: .max)
    /// The minimum with which a server can work.
    package static let least = 96

    /// The maximum number of event loops, each of which holds three descriptors.
    package var eventLoops: Int { max(1, limit / 64) }

    /// Databases with all their readers, logs, locks, listeners, timers and signals: 53 on two loops, of which 6 are the loops'.
    private var own: Int { 56 + 3 * eventLoops }

    private var spare: Int { max(0, limit - own) }

    /// Unassigned descriptors: for short-lived files and name lookups, and for connections that are about to close.
    package var reserve: Int { spare / 4 }

    /// The number of open descriptors below which a listener accepts.
    package var acceptsBelow: Int { limit - reserve }

    /// The limit of connections for each of the two listeners of the admin API.
    package var adminConnections: Int { min(64, max(2, spare / 16)) }

    /// The limit of connections to upstreams, idle ones included. A response on a connection may need a file of its own.
    package var upstreamConnections: Int { min(1024, max(4, spare / 8)) }

    /// The limit of client connections to the proxy, over all listeners.
    package var clientConnections: Int { max(1, spare - reserve - 2 * (adminConnections + upstreamConnections)) }
}
