// The keys of `proxy` and `admin` (docs/reference/configuration.md#proxy).
import RockpoolCore

extension ProxySettings {
    static let section = Section<ProxySettings>([
        .value("listen", field: \.listen, as: .listener),
        .optional("socks", field: \.socks, as: .listener),
        .optional("transparent", field: \.transparent, as: .listener),
        .optionalSection("auth", field: \.auth, of: ProxyAuthentication.section, blank: ProxyAuthentication(file: "")),
        .list("allow", field: \.allow, of: .network).consented,
        .list("connect_ports", field: \.connectPorts, of: .whole(in: 1...65535)).consented,
        .section("timeouts", field: \.timeouts, of: ClientTimeouts.section),
        .section("limits", field: \.limits, of: ClientLimits.section),
        .list("deny_addresses", field: \.denyAddresses, of: .network).consented,
        .list("intercept", field: \.intercept, of: .hostPattern).consented,
        .list("no_proxy", field: \.noProxy, of: .host),
    ])
}

extension ProxyAuthentication {
    static let section = Section<ProxyAuthentication>([.value("file", field: \.file, as: .path).required])
}

extension ClientTimeouts {
    static let section = Section<ClientTimeouts>([
        .value("head", field: \.head, as: .span),
        .value("body", field: \.body, as: .span),
        .value("idle", field: \.idle, as: .span),
        .value("tunnel", field: \.tunnel, as: .span),
    ])
}

extension ClientLimits {
    static let section = Section<ClientLimits>([
        .value("head", field: \.headBytes, as: .limit),
        .value("field", field: \.fieldBytes, as: .limit),
        .value("fields", field: \.fields, as: .whole(in: 1...10_000)),
        .value("target", field: \.targetBytes, as: .limit),
        .value("body_rate", field: \.bodyRate, as: .limit),
        .value("connections", field: \.connections, as: .whole(in: 1...1_000_000)),
        .value("exchanges", field: \.exchanges, as: .whole(in: 1...1_000_000)),
        .value("connections_per_address", field: \.connectionsPerAddress, as: .whole(in: 1...1_000_000)),
        .value("requests_per_connection", field: \.requestsPerConnection, as: .whole(in: 1...1_000_000_000)),
    ])
}

extension AdminSettings {
    static let section = Section<AdminSettings>([
        .value("listen", field: \.listen, as: .listener),
        .list("hosts", field: \.hosts, of: .host).consented,
        .optional("socket", field: \.socket, as: .path),
        .value("socket_access", field: \.socketAccess, as: .word).consented,
    ])
}
