// The target of a connection that is known before its first byte: from SOCKS, from CONNECT, or from the address that a redirected client
// wanted (docs/reference/behaviour.md#targets).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolEngine

/// Where a client's connection should lead. The rules are those of the proxy for requests and CONNECT.
struct KnownTarget {
    /// The treatment of the connection.
    enum Course {
        /// The bytes are passed on.
        case tunnel
        /// The first bytes decide: HTTP, or TLS that may be decrypted.
        case inspect
    }

    /// Lower case; an IPv6 address without brackets.
    let host: String
    let port: Int
    let service: ConnectionService
    /// True if anything that begins no request of HTTP/1 is passed on, as a tunnel would: HTTP/2 without TLS, as gRPC uses it, or another
    /// protocol.
    var mayBeTunnel = false

    var isAddress: Bool { IPAddress(host) != nil }
    var http: OriginAddress { OriginAddress(scheme: .http, host: host, port: port) }
    var https: OriginAddress { OriginAddress(scheme: .https, host: host, port: port) }
    var isDeclaredForHTTP: Bool { service.engine.upstream(for: http) != nil }
    var isDecrypted: Bool { isDecrypted(host) }
    var mayTunnel: Bool { (try? service.dialer.ports.checkTunnel(host: host, port: port)) != nil }

    func isDecrypted(_ name: String) -> Bool { service.engine.configuration.interception(host: name, port: port).isDecrypted }

    /// Throws `Refusal` for Rockpool itself, and for a port that neither tunnels nor requests may use.
    func course() throws(Refusal) -> Course {
        try service.resolution.checkNotOurs(host: host, port: port)
        if isDeclaredForHTTP || isDecrypted { return .inspect }
        if mayTunnel, port != 80 { return isAddress && service.engine.configuration.interceptsAnything ? .inspect : .tunnel }
        try service.dialer.ports.checkForwarding(to: http)
        return .inspect
    }

    /// True if bytes that are no TLS handshake are requests.
    var speaksHTTP: Bool { isDeclaredForHTTP || port == 80 || !mayTunnel }

    /// The service for requests on this connection: of this origin, or of the origin that `Host` names if the target is only an address.
    var requests: ConnectionService { isAddress && !isDeclaredForHTTP ? service.byHost() : service.inside(http) }
}
