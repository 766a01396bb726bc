// The upstreams of one gateway listener, and the selection of one by `Host` and path (docs/guide/clients.md#gateways).

/// One listener for one or several upstreams.
package struct GatewayListener: Hashable, Sendable {
    /// `host:port` as configured.
    package let listen: String
    package private(set) var upstreams: [Upstream]

    package init(listen: String, upstreams: [Upstream]) { (self.listen, self.upstreams) = (listen, upstreams) }

    /// True if the listener speaks TLS.
    package var isSecure: Bool { upstreams.contains { $0.gatewaySettings?.tls == .auto } }

    /// True if `host` may be in the listener's certificate: a name of the configuration, or one of this machine.
    package func names(_ host: String) -> Bool {
        OriginAddress.isLoopback(host) || HostAndPort(listen)?.host == host
            || upstreams.contains { $0.gatewaySettings?.host == host || $0.origin.host == host }
    }

    /// True if another configuration's listener can go on with this one's socket.
    package func isSamePlace(as other: GatewayListener) -> Bool {
        guard let place = HostAndPort(listen), place == HostAndPort(other.listen) else { return false }
        // Port 0 is another one for each listener.
        return place.port != 0 || upstreams.contains { upstream in other.upstreams.contains { $0.name == upstream.name } }
    }

    /// The listeners of a configuration, in the order of the upstreams; port 0 is a listener of its own for each upstream.
    package static func all(of upstreams: [Upstream]) -> [GatewayListener] {
        var listeners: [GatewayListener] = []
        for upstream in upstreams {
            guard let listen = upstream.gateway else { continue }
            let address = HostAndPort(listen)
            let known = listeners.firstIndex { address != nil && address?.port != 0 && HostAndPort($0.listen) == address }
            if let known {
                listeners[known].upstreams.append(upstream)
            } else {
                listeners.append(.init(listen: listen, upstreams: [upstream]))
            }
        }
        return listeners
    }
}

/// The way of one request through a gateway.
package struct GatewayEntrance: Hashable, Sendable {
    package let upstream: Upstream
    /// The target for the upstream.
    package let target: String
    /// The part of the path that was removed; empty if none was.
    package let prefix: String
    /// True if the client used the origin's own name, so that nothing has to be translated.
    package let namesOrigin: Bool

    fileprivate init(_ upstream: Upstream, _ target: String, prefix: String, namesOrigin: Bool = false) {
        (self.upstream, self.target, self.prefix, self.namesOrigin) = (upstream, target, prefix, namesOrigin)
    }
}

extension Upstream {
    /// The origin's path and query for those at the gateway. `*` and Rockpool's own paths are no paths of the API.
    fileprivate func wholePath(_ path: String) -> String {
        basePath.isEmpty || path == "*" || path.hasPrefix(RequestTarget.ownPath) ? path : basePath + path
    }
}

extension GatewayListener {
    /// Selects the upstream of a request.
    ///
    /// - Parameters:
    ///   - port: The port in the request's authority, or the default of the listener's scheme.
    ///   - path: The path and query, or `*`.
    ///   - address: `host:port` of the listener as bound.
    /// - Throws: 421 for a host, and 404 for a path, that no upstream has.
    package func entrance(host: String, port: Int, path: String, at address: String) throws(Refusal) -> GatewayEntrance {
        let named = upstreams.filter { $0.gatewaySettings?.host == host }
        if named.isEmpty, let own = upstreams.first(where: { $0.origin.host == host && [$0.origin.port, 80].contains(port) }) {
            let namesOrigin = !address.hasSuffix(":\(port)")
            return GatewayEntrance(own, namesOrigin ? path : own.wholePath(path), prefix: "", namesOrigin: namesOrigin)
        }
        let others = upstreams.count == 1 ? upstreams : upstreams.filter { $0.gatewaySettings?.host == nil }
        let isOurs = OriginAddress.isLoopback(host) || address == "\(host):\(port)"
        let candidates = named.isEmpty && isOurs ? others : named
        guard !candidates.isEmpty else { throw misdirected(host) }
        return try entrance(among: candidates, path: path)
    }

    private func entrance(among candidates: [Upstream], path: String) throws(Refusal) -> GatewayEntrance {
        if candidates.count == 1, let only = candidates.first, only.gatewaySettings?.path ?? "" == "" {
            return GatewayEntrance(only, only.wholePath(path), prefix: "")
        }
        let fitting = candidates.compactMap { upstream in
            Self.removing(upstream.gatewaySettings?.path ?? "", from: path).map { (upstream, $0) }
        }
        if let (upstream, rest) = fitting.max(by: { $0.1.utf8.count > $1.1.utf8.count }) {
            return GatewayEntrance(upstream, upstream.wholePath(rest), prefix: upstream.gatewaySettings?.path ?? "")
        }
        guard path == "*" || path.hasPrefix(RequestTarget.ownPath), let first = candidates.first else {
            let known = candidates.compactMap { $0.gatewaySettings?.path }.joined(separator: ", ")
            throw Refusal(status: 404, problem: "not-found", detail: "paths of this gateway begin with \(known)")
        }
        return GatewayEntrance(first, path, prefix: first.gatewaySettings?.path ?? "")
    }

    /// Returns the path without `prefix`, which is whole segments; nil if it does not begin so.
    static func removing(_ prefix: String, from path: String) -> String? {
        guard !prefix.isEmpty else { return path }
        guard path.hasPrefix(prefix) else { return nil }
        let rest = path.dropFirst(prefix.count)
        switch rest.first {
        case nil: return "/"
        case "/": return String(rest)
        case "?", "#": return "/" + rest
        default: return nil
        }
    }

    private func misdirected(_ host: String) -> Refusal {
        let names = upstreams.map { $0.gatewaySettings?.host ?? $0.origin.authority }.joined(separator: ", ")
        return Refusal(status: 421, problem: "misdirected", detail: "this gateway stands in for \(names), not for \(host)")
    }
}
