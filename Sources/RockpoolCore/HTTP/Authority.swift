// Hosts and ports: in messages, in the configuration, and as the origin that identifies an upstream (RFC 3986 §3.2, RFC 9110 §4.2, §4.3.1).
package import HTTPTypes

/// A host and an optional port, parsed strictly (RFC 3986 §3.2, RFC 9110 §4.2, RFC 9112 §3.2): no userinfo, no zone, no percent-encoding,
/// no unusual notation of an address.
package struct Authority: Hashable, Sendable {
    /// Lower case, without a trailing dot; an IPv6 address in canonical form (RFC 5952) and without brackets.
    package var host: String
    /// 1…65535; nil when absent or empty, which means the scheme's default (RFC 9110 §4.2.1).
    package var port: Int?

    /// A valid host, and a port in 1…65535. Neither is checked.
    package init(host: String, port: Int? = nil) {
        self.host = host
        self.port = port
    }

    /// Parses all of `text`, or throws a 400.
    package static func parse(_ text: Substring) throws(Refusal) -> Authority {
        let (host, rest) = try splitHost(text)
        guard let colon = rest.utf8.first else { return Authority(host: host) }
        guard colon == UInt8(ascii: ":") else { throw .badRequest("something other than a port follows the host") }
        let digits = rest.dropFirst()
        return Authority(host: host, port: digits.isEmpty ? nil : try port(in: digits))
    }

    private static func splitHost(_ text: Substring) throws(Refusal) -> (host: String, rest: Substring) {
        if text.utf8.first == UInt8(ascii: "[") {
            guard let end = text.utf8.firstIndex(of: UInt8(ascii: "]")),
                let address = IPAddress(text[text.utf8.index(after: text.startIndex)..<end]), address.family == .v6
            else { throw .badRequest("no IPv6 address within the brackets of the host") }
            return (address.description, text[text.utf8.index(after: end)...])
        }
        let end = text.utf8.firstIndex(of: UInt8(ascii: ":")) ?? text.endIndex
        let host = text[..<end]
        guard isHost(host) else { throw .badRequest("the host is neither a name nor an address") }
        return (withoutRootDot(host.lowercased()), text[end...])
    }

    /// Removes the trailing dot: `example.com.` is the absolute form of `example.com` (RFC 3986 §3.2.2). If the two counted as different
    /// hosts, decryption, access rules and cache keys would differ; so they are one host everywhere, including in requests sent upstream.
    static func withoutRootDot(_ host: String) -> String { host.utf8.last == UInt8(ascii: ".") ? String(host.dropLast()) : host }

    /// At most five digits, so that the value cannot overflow to an allowed port.
    private static func port(in digits: Substring) throws(Refusal) -> Int {
        guard digits.isDigits, digits.utf8.count <= 5, let port = Int(digits), (1...65535).contains(port)
        else { throw .badRequest("the port is not a number from 1 to 65535") }
        return port
    }

    /// The subset of RFC 3986's reg-name that name services support: letters, digits, `-` and `_` in labels of 1…63, 253 in all. A name
    /// whose last label is a number must be an IPv4 address of four decimal parts, because resolvers also parse `127.1` and `0x7f000001` as
    /// addresses (RFC 3986 §7.4).
    private static func isHost(_ host: Substring) -> Bool {
        let name = host.utf8.last == UInt8(ascii: ".") ? Substring(host.utf8.dropLast()) : host
        guard (1...253).contains(name.utf8.count) else { return false }
        var length = 0  // of the current label
        for byte in name.utf8 {
            if byte == UInt8(ascii: ".") {
                guard length > 0 else { return false }
                length = 0
            } else {
                length += 1
                guard length <= 63, byte.isAlphanumeric || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_") else { return false }
            }
        }
        guard length > 0 else { return false }
        return !isNumber(Substring(name.utf8.suffix(length))) || IPAddress(name) != nil
    }

    private static func isNumber(_ label: Substring) -> Bool {
        guard label.utf8.first?.isDigit == true else { return false }
        if label.isDigits { return true }
        return label.lowercased().hasPrefix("0x") && label.utf8.dropFirst(2).allSatisfy(\.isHexDigit)
    }
}

/// Parses the Host field (RFC 9110 §7.2, RFC 9112 §3.2).
package enum HostField {
    /// Returns the host (lower case, without brackets) and the port; throws a 400 for a missing, repeated, empty or invalid field. The
    /// grammar permits an empty value, but no http or https URI has an empty host (RFC 9110 §4.2.1).
    package static func parse(_ fields: HTTPFields) throws(Refusal) -> (host: String, port: Int?) {
        let values = fields[values: .hostField]
        guard let value = values.first else { throw .badRequest("no Host") }
        guard values.count == 1 else { throw .badRequest("more than one Host") }
        let authority: Authority
        do { authority = try Authority.parse(Substring(value).trimmingOWS()) } catch { throw .badRequest("Host: \(error.detail)") }
        return (authority.host, authority.port)
    }
}

/// A host and a port, parsed into two values.
package struct HostAndPort: Hashable, Sendable, CustomStringConvertible {
    /// Lower case; an IPv6 address without brackets.
    package var host: String
    /// 0…65535; 0 selects a free port.
    package var port: Int

    /// Nil if the host is empty or invalid, or the port is missing (without a default) or not a number.
    package init?(_ text: String, defaultPort: Int? = nil) {
        var rest = text[...]
        if rest.first == "[" {
            guard let end = rest.firstIndex(of: "]") else { return nil }
            host = rest[rest.index(after: rest.startIndex)..<end].lowercased()
            guard host.contains(":"), host.utf8.allSatisfy({ "0123456789abcdef:.".utf8.contains($0) }) else { return nil }
            rest = rest[rest.index(after: end)...]
        } else {
            let end = rest.firstIndex(of: ":") ?? rest.endIndex
            host = rest[..<end].lowercased()
            guard !host.isEmpty, host.utf8.allSatisfy({ "abcdefghijklmnopqrstuvwxyz0123456789-._".utf8.contains($0) }) else { return nil }
            rest = rest[end...]
        }
        if rest.isEmpty, let defaultPort {
            port = defaultPort
        } else {
            let digits = rest.dropFirst()
            guard rest.first == ":", (1...5).contains(digits.count), digits.utf8.allSatisfy({ (48...57).contains($0) }),
                let value = Int(digits), value <= 65535
            else { return nil }
            port = value
        }
    }

    package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// True if a listener at this address is reachable from this machine only.
    package var isLoopback: Bool {
        host == "localhost" || host == "::1" || (host.hasPrefix("127.") && host.allSatisfy { "0123456789.".contains($0) })
    }

    /// True if a listener at this address accepts connections to every address of the machine.
    package var isWildcard: Bool { ["0.0.0.0", "::"].contains(host) }

    /// True if listeners at both addresses cannot be open at the same time.
    package func collides(with other: HostAndPort) -> Bool {
        guard port == other.port, port != 0 else { return false }
        return host == other.host || isWildcard || other.isWildcard
            || (isLoopback && other.isLoopback && [host, other.host].contains("localhost"))
    }
}

/// `api.example.com`, `*.example.com` or `[::1]`, each with an optional `:port` (docs/reference/behaviour.md#https `proxy.intercept`).
package struct HostPattern: Hashable, Sendable {
    private let host: String
    /// `*.`: matches names below `host` at any depth, but not `host` itself.
    private let isBelow: Bool
    /// Nil matches any port.
    private let port: Int?

    /// Nil if `text` is not a valid entry.
    package init?(_ text: String) {
        isBelow = text.hasPrefix("*.")
        let rest = isBelow ? String(text.dropFirst(2)) : text
        guard let authority = try? Authority.parse(rest[...]), !isBelow || IPAddress(authority.host) == nil else { return nil }
        host = authority.host
        port = authority.port
    }

    /// True if the entry matches this host (lower case, an IPv6 address without brackets) at this port.
    package func matches(host name: String, port number: Int) -> Bool {
        guard port == nil || port == number else { return false }
        return isBelow ? name.hasSuffix("." + host) : name == host
    }
}

/// An origin server's address. The host is lower case; an IPv6 address is without brackets.
package struct OriginAddress: Hashable, Sendable, Codable {
    package enum Scheme: String, Sendable, Codable { case http, https }

    package var scheme: Scheme
    package var host: String
    /// 1…65535.
    package var port: Int

    package init(scheme: Scheme, host: String, port: Int? = nil) {
        self.scheme = scheme
        self.host = Authority.withoutRootDot(host.lowercased())
        self.port = port ?? scheme.defaultPort
    }

    /// `host`, or `host:port` if the port is not the scheme's default: the value of `Host` (RFC 9110 §7.2).
    package var authority: String { port == scheme.defaultPort ? bracketedHost : hostAndPort }
    /// `host:port`, always with the port: the form used by CONNECT and by `next-hop` of Proxy-Status.
    package var hostAndPort: String { bracketedHost + ":" + String(port) }
    /// `scheme://authority`.
    package var url: String { scheme.rawValue + "://" + authority }

    /// The host in URI syntax: an IPv6 address in brackets.
    package var bracketedHost: String { host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host }

    /// True if the host's text denotes this machine, without name resolution: the loopback names (RFC 6761 §6.3) and addresses.
    package static func isLoopback(_ host: String) -> Bool {
        if let address = IPAddress(host) { return address.meansLoopback || address.isUnspecified }
        return host == "localhost" || host.hasSuffix(".localhost")
    }
}

/// An origin, and the path of an API below it.
package struct OriginBase: Hashable, Sendable {
    package var origin: OriginAddress
    /// Empty, or whole segments without a slash at the end.
    package var path: String

    package init(origin: OriginAddress, path: String) { (self.origin, self.path) = (origin, path) }
}

extension OriginAddress.Scheme {
    package var defaultPort: Int { self == .https ? 443 : 80 }
}

/// Prevents access to mail servers and databases through the proxy (RFC 9110 §9.3.6; docs/reference/behaviour.md#targets `connect_ports`,
/// docs/security-model.md#ports). Declared origins are always allowed.
package struct PortPolicy: Hashable, Sendable {
    // Arrays, because both are short and the policy is created per connection: they need no hashing.
    private let connectPorts: [Int]
    private let declared: [OriginAddress]

    /// - Parameters:
    ///   - connectPorts: The configured ports.
    ///   - declared: The origins of the upstreams.
    package init(connectPorts: [Int], declared: [OriginAddress]) {
        self.connectPorts = connectPorts
        self.declared = declared
    }

    /// Throws a 403 unless a tunnel to the port is allowed.
    package func checkTunnel(host: String, port: Int) throws(Refusal) {
        let origins = [OriginAddress.Scheme.http, .https].map { OriginAddress(scheme: $0, host: host, port: port) }
        let isDeclared = origins.contains(where: declared.contains)
        guard connectPorts.contains(port) || isDeclared else { throw Self.forbidden("no tunnels to port \(port)") }
    }

    /// Throws a 403 unless a forwarded request to the origin's port is allowed.
    package func checkForwarding(to origin: OriginAddress) throws(Refusal) {
        let isOrdinary = origin.port == 80 || origin.port == 443 || origin.port >= 1024 && !Self.notHTTP.contains(origin.port)
        guard isOrdinary || declared.contains(origin) else { throw Self.forbidden("no requests to port \(origin.port)") }
    }

    private static func forbidden(_ detail: String) -> Refusal {
        Refusal(status: 403, problem: "forbidden-target", detail: detail)
    }

    /// Services on ports above 1023 with line-based text protocols, which an HTTP request could be crafted to match: NFS, MySQL, RDP,
    /// PostgreSQL, AMQP, X11, Redis, IRC, memcached.
    private static let notHTTP: Set<Int> = [2049, 3306, 3389, 5432, 5672, 6000, 6379, 6667, 11211]
}
