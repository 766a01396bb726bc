// The origin of a request: from its target on the proxy, from the listener on a gateway (RFC 9112 §3.2,
// docs/reference/behaviour.md#targets).
import HTTPTypes
import RockpoolCore

/// Resolves request targets for one listener.
struct TargetResolution: Sendable {
    /// The path prefix of status documents on every authority (docs/reference/behaviour.md#status-document).
    static let ownPath = "/.well-known/rockpool/"

    let role: ListenerRole
    let ports: PortPolicy
    /// `host:port` of this listener as bound.
    let listener: String
    let ownPorts: OwnPorts

    func destination(of target: RequestTarget, fields: HTTPFields) throws(Refusal) -> Destination {
        switch role {
        case .proxy, .socks: try throughProxy(target, fields: fields)
        case .transparent: try byHost(target, fields: fields)
        case .gateway(let gateway): try throughGateway(target, fields: fields, gateway: gateway)
        case .intercepted(let origin): try throughTunnel(target, fields: fields, origin: origin)
        }
    }

    private func throughProxy(_ target: RequestTarget, fields: HTTPFields) throws(Refusal) -> Destination {
        switch target {
        case .authority(let host, let port):
            try checkNotOurs(host: host, port: port)
            return .tunnel(host: host, port: port)
        case .absolute(let origin, let path):
            if isOurs(host: origin.host, port: origin.port), !path.hasPrefix(Self.ownPath) { throw ownAddress }
            try ports.checkForwarding(to: origin)
            return .origin(origin, target: path)
        case .origin(let path) where path.hasPrefix(Self.ownPath):
            let host = try HostField.parse(fields)
            return .origin(OriginAddress(scheme: .http, host: host.host, port: host.port), target: path)
        case .origin, .asterisk:
            throw Refusal(
                status: 400, problem: "bad-request",
                detail: "this is a proxy: send the whole URL (set it as http_proxy), or use a gateway listener of a declared upstream")
        }
    }

    /// A client that knows of no proxy: `Host` names the origin.
    private func byHost(_ target: RequestTarget, fields: HTTPFields) throws(Refusal) -> Destination {
        let path: String
        switch target {
        case .authority: throw Refusal(status: 405, problem: "method-not-allowed", detail: "CONNECT is for the proxy")
        case .absolute: return try throughProxy(target, fields: fields)
        case .origin(let rest): path = rest
        case .asterisk: path = "*"
        }
        let host = try HostField.parse(fields)
        return try throughProxy(
            .absolute(OriginAddress(scheme: .http, host: host.host, port: host.port), pathAndQuery: path), fields: fields)
    }

    private func throughGateway(_ target: RequestTarget, fields: HTTPFields, gateway: GatewayListener) throws(Refusal) -> Destination {
        if case .authority = target {
            throw Refusal(status: 405, problem: "method-not-allowed", detail: "CONNECT is for the proxy listener, not for a gateway")
        }
        let entrance = try entrance(to: target, fields: fields, of: gateway)
        return .origin(entrance.upstream.origin, target: entrance.target)
    }

    /// Within a decrypted tunnel the only origin is CONNECT's: a target or Host of another one is misdirected.
    private func throughTunnel(_ target: RequestTarget, fields: HTTPFields, origin: OriginAddress) throws(Refusal) -> Destination {
        let path: String
        switch target {
        case .authority:
            throw Refusal(status: 405, problem: "method-not-allowed", detail: "CONNECT is for the proxy, not for \(origin.authority)")
        case .absolute(origin, let rest): path = rest
        case .absolute(let other, _): throw misdirected(to: other.url, insteadOf: origin)
        case .origin(let rest): path = rest
        case .asterisk: path = "*"
        }
        let host = try HostField.parse(fields)
        guard host.host == origin.host, host.port ?? origin.scheme.defaultPort == origin.port else {
            throw misdirected(to: host.host, insteadOf: origin)
        }
        return .origin(origin, target: path)
    }

    private func misdirected(to other: String, insteadOf origin: OriginAddress) -> Refusal {
        Refusal(status: 421, problem: "misdirected", detail: "this connection is to \(origin.authority), not to \(other)")
    }

    /// Throws a 403 if the target is a listener of this process.
    func checkNotOurs(host: String, port: Int) throws(Refusal) {
        if isOurs(host: host, port: port) { throw ownAddress }
    }

    private func isOurs(host: String, port: Int) -> Bool {
        ownPorts.contains(port) && (OriginAddress.isLoopback(host) || listener.hasPrefix(host + ":"))
    }

    private var ownAddress: Refusal {
        Refusal(status: 403, problem: "forbidden-target", detail: "the target is Rockpool itself")
    }
}
