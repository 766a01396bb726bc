// The limits of a client's messages and connections (docs/reference/configuration.md).

/// Limits on the size and number of a client's messages and connections.
package struct ClientLimits: Hashable, Sendable {
    package var headBytes = ByteCount.kib(64)
    package var fieldBytes = ByteCount.kib(32)
    package var fields = 128
    package var targetBytes = ByteCount.kib(16)
    /// The minimum rate of a request body in bytes per second, once the time limit for a head has passed.
    package var bodyRate = ByteCount.kib(1)
    package var connections = 1024
    /// Exchanges under way over all connections: requests until their reply is sent, streams, tunnels.
    package var exchanges = 512
    /// Connections from one address of another machine.
    package var connectionsPerAddress = 128
    package var requestsPerConnection = 1000

    package init() {}
}
