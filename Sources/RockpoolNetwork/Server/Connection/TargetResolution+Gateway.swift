// A gateway stands in for its origins: requests name the origin wherever they named the gateway (docs/guide/clients.md#gateways).
import HTTPTypes
import RockpoolCore

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
