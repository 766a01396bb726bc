// The origin of a request: from its target on the proxy, from the listener on a gateway (RFC 9112 §3.2,
// docs/reference/behaviour.md#targets).
import HTTPTypes
package import RockpoolCore
import RockpoolEngine
import Synchronization

/// Resolves request targets for one listener.
struct TargetResolution: Sendable {
    let role: ListenerRole
    let ports: PortPolicy
    /// `host:port` of this listener as bound.
    let listener: String
    let ownPorts: OwnPorts

    /// True if every request leads to the origin that it names, or to one and the same, with its path unchanged.
    var keepsPath: Bool {
        guard case .gateway(let door) = role else { return true }
        let gateway = door.listener
        return gateway.upstreams.count == 1
            && gateway.upstreams.allSatisfy { ($0.gatewaySettings?.path ?? "").isEmpty && $0.basePath.isEmpty }
    }

    /// Returns where a request leads.
    /// - Parameter host: the value of `Host`, if the request gate has parsed it; nil to parse it.
    func destination(of target: RequestTarget, fields: HTTPFields, host: Authority? = nil) throws(Refusal) -> Destination {
        let name = HostName(fields: fields, parsed: host)
        return switch role {
        case .proxy, .socks: try throughProxy(target, name: name)
        case .transparent: try byHost(target, name: name)
        case .gateway(let door): try throughGateway(target, name: name, gateway: door.listener)
        case .intercepted(let origin): try throughTunnel(target, name: name, origin: origin)
        }
    }

    private func throughProxy(_ target: RequestTarget, name: HostName) throws(Refusal) -> Destination {
        switch target {
        case .authority(let host, let port):
            try checkNotOurs(host: host, port: port)
            return .tunnel(host: host, port: port)
        case .absolute(let origin, let path):
            if isOurs(host: origin.host, port: origin.port), !path.hasPrefix(RequestTarget.ownPath) { throw ownAddress }
            try ports.checkForwarding(to: origin)
            return .origin(origin, target: path)
        case .origin(let path) where path.hasPrefix(RequestTarget.ownPath):
            let host = try name.authority()
            return .origin(OriginAddress(scheme: .http, host: host.host, port: host.port), target: path)
        case .origin, .asterisk:
            throw Refusal(
                status: 400, problem: "bad-request",
                detail: "this is a proxy: send the whole URL (set it as http_proxy), or use a gateway listener of a declared upstream")
        }
    }

    /// A client that knows of no proxy: `Host` names the origin.
    private func byHost(_ target: RequestTarget, name: HostName) throws(Refusal) -> Destination {
        let path: String
        switch target {
        case .authority: throw Refusal(status: 405, problem: "method-not-allowed", detail: "CONNECT is for the proxy")
        case .absolute: return try throughProxy(target, name: name)
        case .origin(let rest): path = rest
        case .asterisk: path = "*"
        }
        let host = try name.authority()
        return try throughProxy(
            .absolute(OriginAddress(scheme: .http, host: host.host, port: host.port), pathAndQuery: path), name: name)
    }

    private func throughGateway(_ target: RequestTarget, name: HostName, gateway: GatewayListener) throws(Refusal) -> Destination {
        if case .authority = target {
            throw Refusal(status: 405, problem: "method-not-allowed", detail: "CONNECT is for the proxy listener, not for a gateway")
        }
        let entrance = try entrance(to: target, name: name, of: gateway)
        return .origin(entrance.upstream.origin, target: entrance.target)
    }

    /// Within a decrypted tunnel the only origin is CONNECT's: a target or Host of another one is misdirected.
    private func throughTunnel(_ target: RequestTarget, name: HostName, origin: OriginAddress) throws(Refusal) -> Destination {
        let path: String
        switch target {
        case .authority:
            throw Refusal(status: 405, problem: "method-not-allowed", detail: "CONNECT is for the proxy, not for \(origin.authority)")
        case .absolute(origin, let rest): path = rest
        case .absolute(let other, _): throw misdirected(to: other.url, insteadOf: origin)
        case .origin(let rest): path = rest
        case .asterisk: path = "*"
        }
        let host = try name.authority()
        guard host.host == origin.host, host.port ?? origin.scheme.defaultPort == origin.port else {
            throw misdirected(to: host.host, insteadOf: origin)
        }
        return .origin(origin, target: path)
    }

    private func misdirected(to other: String, insteadOf origin: OriginAddress) -> Refusal {
        Refusal(status: 421, problem: "misdirected", detail: "this connection is to \(origin.authority), not to \(other)")
    }

    /// Returns the URL of a request as its client names it, of which nothing is checked, for the access log.
    func name(of target: String, host: String?) -> String {
        guard target.hasPrefix("/") || target == "*" else { return target }
        let scheme: OriginAddress.Scheme =
            switch role {
            case .intercepted(let origin): origin.scheme
            case .gateway(let door): door.listener.isSecure ? .https : .http
            case .proxy, .socks, .transparent: .http
            }
        return "\(scheme.rawValue)://\(host ?? listener)\(target)"
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

/// The `Host` of a request, parsed once: the request gate has parsed it in most cases.
struct HostName {
    let fields: HTTPFields
    var parsed: Authority?

    /// Throws a 400 for a field that is missing, repeated or invalid.
    func authority() throws(Refusal) -> Authority {
        if let parsed { return parsed }
        let (host, port) = try HostField.parse(fields)
        return Authority(host: host, port: port)
    }
}

/// The destination of a request.
enum Destination: Equatable {
    case origin(OriginAddress, target: String)
    case tunnel(host: String, port: Int)
}

/// The judgement of a request by its name and password (docs/security-model.md#proxy-passwords).
enum ProxyAdmission {
    case admitted
    case refused(Reply)
    /// The password must be compared first: nil admits the request.
    case open(@Sendable () async -> Reply?)
}

/// A gateway stands in for its origins: requests name the origin wherever they named the gateway (docs/guide/clients.md#gateways).
extension TargetResolution {
    /// The scheme of a gateway's own URLs.
    private func scheme(of gateway: GatewayListener) -> OriginAddress.Scheme { gateway.isSecure ? .https : .http }

    /// Selects the upstream of a request by the authority that the client used, and the path.
    func entrance(to target: RequestTarget, name: HostName, of gateway: GatewayListener) throws(Refusal) -> GatewayEntrance {
        switch target {
        case .absolute(let origin, let path):
            return try gateway.entrance(host: origin.host, port: origin.port, path: path, at: listener)
        case .origin, .asterisk, .authority:
            let host = try name.authority()
            let path = if case .origin(let path) = target { path } else { "*" }
            return try gateway.entrance(
                host: host.host, port: host.port ?? scheme(of: gateway).defaultPort, path: path, at: listener)
        }
    }

    /// The request's way through the gateway; nil for another listener.
    /// - Parameter host: the value of `Host`, if the request gate has parsed it; nil to parse it.
    func passage(of target: RequestTarget, fields: HTTPFields, host: Authority? = nil) -> GatewayPassage? {
        let name = HostName(fields: fields, parsed: host)
        guard case .gateway(let door) = role, case let gateway = door.listener,
            let entrance = try? entrance(to: target, name: name, of: gateway)
        else { return nil }
        let used: OriginAddress
        if case .absolute(let origin, _) = target {
            used = origin
        } else {
            guard let host = try? name.authority() else { return nil }
            used = OriginAddress(scheme: scheme(of: gateway), host: host.host, port: host.port)
        }
        let upstream = entrance.upstream
        let address =
            entrance.namesOrigin
            ? nil : GatewayAddress(origin: upstream.origin, base: used.url, prefix: entrance.prefix, basePath: upstream.basePath)
        return GatewayPassage(entrance: entrance, used: used, address: address, host: fields[.hostField])
    }

    /// True if a certificate for `host` may be shown on this listener, besides that for its own address.
    func names(_ host: String) -> Bool {
        if case .gateway(let door) = role { door.listener.names(host) } else { false }
    }
}

/// One request at a gateway.
struct GatewayPassage {
    let entrance: GatewayEntrance
    /// The gateway as the client addressed it.
    let used: OriginAddress
    /// Nil if nothing has to be translated.
    let address: GatewayAddress?
    /// The `Host` field that the client sent.
    let host: String?

    /// The authority under which pages of this gateway are seen: the client's for a gateway that is selected by name, else the listener's.
    func client(at listener: String) -> String { entrance.upstream.gatewaySettings?.host == used.host ? used.hostAndPort : listener }

    /// Replaces the gateway's name in the fields of a request, or keeps the client's `Host` where the upstream asks for it.
    func represent(_ request: inout RequestHead) {
        guard let host else { return }
        if entrance.upstream.preserveHost {
            request.fields[.hostField] = host
        } else {
            let upstream = entrance.upstream
            GatewayFields.rewrite(
                &request.fields, host: host, origin: upstream.origin, prefix: entrance.prefix,
                basePath: entrance.namesOrigin ? "" : upstream.basePath)
        }
    }

    /// The fields about the client at this address, if the upstream asks for them.
    func forwarded(from address: String?, listener: String) -> HTTPFields {
        guard entrance.upstream.forwarded else { return [:] }
        return GatewayFields.forwarded(for: address, host: host ?? listener, scheme: used.scheme.rawValue)
    }
}

/// The upstreams of one gateway, as the configuration in force has them.
package final class GatewayDoor: Sendable {
    private let state: Mutex<GatewayListener>

    package init(_ listener: GatewayListener) { state = Mutex(listener) }

    package var listener: GatewayListener { state.withLock { $0 } }

    func change(to listener: GatewayListener) { state.withLock { $0 = listener } }

    /// Lets requests on connections that are still open know that the gateway is gone.
    func close() { change(to: GatewayListener(listen: listener.listen, upstreams: [])) }
}
