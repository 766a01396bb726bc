// How the descriptors that the system grants are shared out, so that nothing inside ever finds none left (getrlimit(2), RLIMIT_NOFILE).

/// Shares of the limit on open descriptors, of whatever size it is.
///
/// Every share but the reserve is bounded: what the process holds for itself, the connections of the listeners, and for each connection to
/// an upstream a file beside it. The reserve has room for a file, or the far side of a tunnel, for each client where limits are small.
package struct DescriptorBudget: Hashable, Sendable {
    /// Descriptors the process may have open at once.
    package let limit: Int

    /// - Parameter limit: as the system says; what is beyond some millions is as good as no limit.
    package init(limit: Int) { self.limit = min(max(0, limit), 1 << 24) }

    /// For commands and tests, which serve nobody else.
    package static let unlimited = DescriptorBudget(limit: .max)
    /// With fewer a server cannot do its work.
    package static let least = 96

    /// Event loops there may be, each of which holds three descriptors.
    package var eventLoops: Int { max(1, limit / 64) }

    /// Databases with all their readers, logs, locks, listeners, timers and signals: 53 on two loops, of which 6 are the loops'.
    private var own: Int { 56 + 3 * eventLoops }

    private var spare: Int { max(0, limit - own) }

    /// Promised to nobody: for what opens a file or looks up a name in between, and for connections that are about to close.
    package var reserve: Int { spare / 4 }

    /// A listener accepts only while fewer are open.
    package var acceptsBelow: Int { limit - reserve }

    /// Connections that each of the two doors of the admin API may hold.
    package var adminConnections: Int { min(64, max(2, spare / 16)) }

    /// Connections to upstreams, those that wait for a next request included. What comes through one may need a file of its own.
    package var upstreamConnections: Int { min(1024, max(4, spare / 8)) }

    /// Connections that clients of the proxy may hold, all listeners together.
    package var clientConnections: Int { max(1, spare - reserve - 2 * (adminConnections + upstreamConnections)) }
}
