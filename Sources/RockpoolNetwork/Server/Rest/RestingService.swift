// The owner of connections that rest (docs/security-model.md#idle-connections).
import NIOCore
import RockpoolEngine

/// Shared by the connections of a listener.
protocol RestingService: AnyObject, Sendable {
    /// How long a connection may be idle.
    var idleLimit: TimeAmount { get }
    var connections: OpenConnections { get }
    /// Installs the handlers of a connection that has rested on its new channel.
    func resume(on channel: any Channel, open: OpenConnection, after past: RestingConnections.Past) throws
}
