// Targets, hosts, addresses and references: a value that was parsed and written is parsed as the same value.
import RockpoolCore

extension FuzzTarget {
    /// Lines: method, target, host, reference.
    static func uri(_ input: FuzzInput) throws(BrokenProperty) {
        let method = input.text(0)
        if let target = try? RequestTarget.parse(input.text(1), method: method) { try isStable(target, method: method) }
        try hosts(input.text(2))
        let origin = OriginAddress(scheme: .https, host: "a.test")
        if let url = URIReference.resolve(input.text(3), origin: origin, target: "/v1/notes/17?a=b") {
            try hold(url.utf8.starts(with: "https://a.test/".utf8), "a resolved reference stays with its origin")
        }
        if case .sameOrigin(let target) = RedirectTarget(input.text(3), origin: origin, target: "/v1/notes/17?a=b") {
            try hold(target.utf8.first == UInt8(ascii: "/"), "a redirect within the origin is a path")
        }
    }

    private static func isStable(_ target: RequestTarget, method: String) throws(BrokenProperty) {
        let text: String
        switch target {
        case .absolute(let origin, let pathAndQuery): text = origin.url + (pathAndQuery == "*" ? "" : pathAndQuery)
        case .authority(let host, let port): text = OriginAddress(scheme: .http, host: host, port: port).hostAndPort
        case .origin(let path):
            text = path
            let plain = path.utf8.prefix { $0 != UInt8(ascii: "?") }
            if !plain.contains(UInt8(ascii: "*")) {
                let path = String(Substring(plain))
                try hold(PathPattern(path).matches(method: "GET", path: path), "a path is matched by itself")
            }
        case .asterisk: text = "*"
        }
        let again = try? RequestTarget.parse(text, method: method)
        try hold(again == target, "a target that was read is read as the same again: \(text)")
    }

    private static func hosts(_ text: String) throws(BrokenProperty) {
        if let authority = try? Authority.parse(text[...]) {
            let origin = OriginAddress(scheme: .https, host: authority.host, port: authority.port)
            let again = try? Authority.parse(origin.hostAndPort[...])
            try hold(again == Authority(host: authority.host, port: origin.port), "an authority that was read is read as the same again")
            try hold(
                authority.host.utf8.count <= 253 && !authority.host.utf8.contains { $0 >= 0x80 || $0 <= 0x20 }, "a host is a short name")
            try hold(HostPattern(text)?.matches(host: authority.host, port: origin.port) == true, "a host's pattern names it")
        }
        if let address = IPAddress(text) { try hold(IPAddress(address.description) == address, "an address is read back") }
        if let network = CIDR(text) {
            try hold(CIDR(network.description) == network, "a network is read back")
            try hold(network.contains(network.network), "a network holds its first address")
        }
        if let place = HostAndPort(text) { try hold(HostAndPort(place.description) == place, "a listener's place is read back") }
    }
}
