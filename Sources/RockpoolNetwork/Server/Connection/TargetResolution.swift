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
        case .proxy: try throughProxy(target, fields: fields)
        case .gateway(let upstream): try throughGateway(target, fields: fields, upstream: upstream)
        case .intercepted(let origin): try throughTunnel(target, fields: fields, origin: origin)
        }
    }

    /// Returns the gateway's address as the sender of a request uses it; nil on other listeners, and for the origin's own name.
    func gateway(of target: RequestTarget, fields: HTTPFields) -> GatewayAddress? {
        guard case .gateway(let upstream) = role else { return nil }
        if case .absolute(let origin, _) = target { return GatewayAddress(origin: upstream.origin, base: origin.url) }
        guard let host = try? HostField.parse(fields) else { return nil }
        let used = OriginAddress(scheme: .http, host: host.host, port: host.port)
        let isOrigins = used.host == upstream.origin.host && [upstream.origin.port, 80].contains(used.port)
        return isOrigins && !listener.hasSuffix(":\(used.port)") ? nil : GatewayAddress(origin: upstream.origin, base: used.url)
    }

    private func throughProxy(_ target: RequestTarget, fields: HTTPFields) throws(Refusal) -> Destination {
        switch target {
        case .authority(let host, let port):
            if isOurs(host: host, port: port) { throw ownAddress }
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

    private func throughGateway(_ target: RequestTarget, fields: HTTPFields, upstream: Upstream) throws(Refusal) -> Destination {
        let path: String
        switch target {
        case .authority:
            throw Refusal(status: 405, problem: "method-not-allowed", detail: "CONNECT is for the proxy listener, not for a gateway")
        case .absolute(let origin, let rest):
            try admit(host: origin.host, port: origin.port, upstream: upstream)
            path = rest
        case .origin(let rest): path = rest
        case .asterisk: path = "*"
        }
        if case .absolute = target {
        } else {
            let host = try HostField.parse(fields)
            try admit(host: host.host, port: host.port ?? 80, upstream: upstream)
        }
        return .origin(upstream.origin, target: path)
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

    /// Accepts the gateway's own address, the origin's authority and loopback names.
    private func admit(host: String, port: Int, upstream: Upstream) throws(Refusal) {
        let origin = upstream.origin
        let isOrigin = host == origin.host && (port == origin.port || port == 80)
        guard isOrigin || OriginAddress.isLoopback(host) || listener == "\(host):\(port)" else {
            throw Refusal(status: 421, problem: "misdirected", detail: "this gateway stands in for \(origin.authority), not for \(host)")
        }
    }

    private func isOurs(host: String, port: Int) -> Bool {
        ownPorts.contains(port) && (OriginAddress.isLoopback(host) || listener.hasPrefix(host + ":"))
    }

    private var ownAddress: Refusal {
        Refusal(status: 403, problem: "forbidden-target", detail: "the target is Rockpool itself")
    }
}
