// The roles of a listener.
package import RockpoolCore

/// The role of a listener.
package enum ListenerRole: Sendable {
    /// Any origin, named by the request's target.
    case proxy
    /// Any target, named by a SOCKS handshake.
    case socks
    /// Any target, named by the address of a redirected connection, and by `Host`.
    case transparent
    /// One or several declared upstreams.
    case gateway(GatewayDoor)
    /// The origin of a decrypted tunnel.
    case intercepted(OriginAddress)
}
