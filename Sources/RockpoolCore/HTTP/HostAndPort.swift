// `host:port` as the configuration writes it; an IPv6 address stands in brackets (RFC 3986 §3.2.2).

/// A host and a port, apart.
package struct HostAndPort: Hashable, Sendable, CustomStringConvertible {
    /// Lower case, an IPv6 address without brackets.
    package var host: String
    /// 0…65535; 0 takes a free port.
    package var port: Int

    /// nil when the host is empty or illegal, or the port missing (without a default) or not a number.
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

    /// Whether only this machine can reach a listener there.
    package var isLoopback: Bool {
        host == "localhost" || host == "::1" || (host.hasPrefix("127.") && host.allSatisfy { "0123456789.".contains($0) })
    }

    /// Whether a listener there takes every address of the machine.
    package var isWildcard: Bool { ["0.0.0.0", "::"].contains(host) }

    /// Whether two listeners cannot both be opened.
    package func collides(with other: HostAndPort) -> Bool {
        guard port == other.port, port != 0 else { return false }
        return host == other.host || isWildcard || other.isWildcard
            || (isLoopback && other.isLoopback && [host, other.host].contains("localhost"))
    }
}
