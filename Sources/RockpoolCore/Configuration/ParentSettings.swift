// The settings of parent proxies (docs/reference/configuration.md#parent-proxy), and which hosts are reached through which, as in a PAC
// file (docs/reference/configuration.md#via).

/// The parent proxy of an upstream, and how Rockpool proves its identity to it.
package struct ParentSettings: Hashable, Sendable {
    /// How one of several parents is chosen.
    package enum Choice: String, CaseIterable, Sendable, Codable {
        /// The first that answers.
        case order
        /// In turn, as often as their weights say.
        case weight
    }

    /// The method of the proof, which libcurl carries out.
    package enum Authentication: String, CaseIterable, Sendable, Codable { case none, basic, negotiate, ntlm }

    /// `http://host:port`, `https://…`, `socks5://…` or `socks5h://…`.
    package var url: String
    package var auth = Authentication.none
    package var user: String?
    /// File of mode 0600 whose first line is the password.
    package var passwordFile: String?
    /// Its share of the requests with `choose: weight`, 1…1000.
    package var weight = 1
    package var choose = Choice.order
    /// Further parents for the same hosts, of which only address, proof and weight count.
    package var others: [ParentSettings] = []

    package init(url: String) { self.url = url }

    /// This parent and the further ones, in their order.
    package var all: [ParentSettings] { [self] + others }
}

/// A name and a password for a parent proxy.
package struct ParentCredential: Hashable, Sendable {
    package let auth: ParentSettings.Authentication
    package let user: String
    package let password: String

    package init(auth: ParentSettings.Authentication, user: String, password: String) {
        (self.auth, self.user, self.password) = (auth, user, password)
    }

    /// The value of `Proxy-Authorization` for Basic (RFC 7617 §2).
    package var basic: String { "Basic " + Base64.encode(Array("\(user):\(password)".utf8)) }
}

/// A parent proxy's address and protocol, in the syntax of `upstreams[].via`.
package struct ParentProxy: Hashable, Sendable {
    package enum Kind: String, Sendable { case http, https, socks5, socks5h }

    package let kind: Kind
    package let address: HostAndPort

    /// Nil unless `text` is `http://`, `https://`, `socks5://` or `socks5h://` with host and port.
    package init?(_ text: String) {
        guard let separator = text.firstRange(of: "://"), let kind = Kind(rawValue: String(text[..<separator.lowerBound])),
            let address = HostAndPort(String(text[separator.upperBound...])), address.port > 0
        else { return nil }
        self.kind = kind
        self.address = address
    }
}

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
