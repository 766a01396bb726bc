// Which hosts are reached through which parent proxy, as in a PAC file (docs/reference/configuration.md#via).

/// Hosts, and the way to them.
package struct ParentRule: Hashable, Sendable {
    /// Patterns of hosts (`ParentPattern`).
    package var hosts: [String] = []
    /// The parent; its URL may be `direct`.
    package var parent = ParentSettings(url: "")

    /// The URL of a rule for hosts that are reached without a parent.
    package static let direct = "direct"

    package init() {}

    /// True if the rule is for this host.
    package func matches(_ origin: OriginAddress) -> Bool {
        hosts.contains { ParentPattern($0)?.matches(host: origin.host, port: origin.port) == true }
    }
}

/// `*` for every host that is not on this machine, a host pattern, or a network for targets that are addresses.
package enum ParentPattern: Hashable, Sendable {
    case any
    case host(HostPattern)
    case network(CIDR)

    /// Nil if `text` is none.
    package init?(_ text: String) {
        if text == "*" {
            self = .any
        } else if let network = CIDR(text) {
            self = .network(network)
        } else if let host = HostPattern(text) {
            self = .host(host)
        } else {
            return nil
        }
    }

    /// `host` is in lower case, an IPv6 address without brackets.
    func matches(host: String, port: Int) -> Bool {
        switch self {
        case .any: !OriginAddress.isLoopback(host)
        case .host(let pattern): pattern.matches(host: host, port: port)
        case .network(let network): IPAddress(host).map(network.contains) ?? false
        }
    }
}
