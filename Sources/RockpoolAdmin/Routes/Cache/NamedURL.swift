// URLs in requests about the cache: of an origin, or as clients of a gateway know them (docs/reference/admin-api.md#cache).
import HTTPTypes
import RockpoolCore
import RockpoolEngine

extension ActiveConfiguration {
    /// Returns the request for a URL; one at the listener of a single gateway stands for that of its origin.
    /// - Throws: a 400 for anything but an absolute http or https URL.
    func request(_ method: HTTPRequest.Method = .get, url: String, fields: HTTPFields = [:]) throws(Refusal) -> RequestHead {
        let named = try RequestHead(method: method, url: url, fields: fields)
        guard routes.upstream(for: named.origin) == nil else { return named }
        let gateways = configuration.upstreams.filter { $0.gatewaySettings?.listens(at: named.origin) == true }
        guard let upstream = gateways.first, gateways.count == 1, upstream.gatewaySettings?.path == nil else { return named }
        return RequestHead(method: method, origin: upstream.origin, target: named.target, fields: fields)
    }
}

extension GatewaySettings {
    /// True for the listener's own address, or another loopback address with its port.
    fileprivate func listens(at place: OriginAddress) -> Bool {
        guard let colon = listen.lastIndex(of: ":"), Int(listen[listen.index(after: colon)...]) == place.port else { return false }
        let host = String(listen[..<colon])
        return host == place.host || [host, place.host].allSatisfy { $0 == "localhost" || IPAddress($0)?.meansLoopback == true }
    }
}
