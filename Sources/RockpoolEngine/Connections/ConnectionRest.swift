// The place of connections without a channel (docs/security-model.md#idle-connections).

/// Keeps the sockets of idle connections.
package protocol ConnectionRest: Sendable {
    /// Closes a connection that was chosen to leave; no effect if it does not rest any more.
    func end(_ connection: OpenConnection)
    /// Closes all connections here, and those that come later.
    func endAll()
}
