// `host:port` as in the configuration; an IPv6 address is in brackets (RFC 3986 §3.2.2).

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
