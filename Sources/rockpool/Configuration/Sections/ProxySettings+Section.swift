// The keys of `proxy` and `admin` (docs/reference/configuration.md#proxy).
import RockpoolCore

extension ProxySettings {
    static let section = Section<ProxySettings>([
        .value("listen", \.listen, .listener),
        .list("allow", \.allow, of: .network),
        .list("connect_ports", \.connectPorts, of: .whole(1...65535)),
        .section("timeouts", \.timeouts, ClientTimeouts.section),
        .section("limits", \.limits, ClientLimits.section),
        .list("deny_addresses", \.denyAddresses, of: .network),
        .list("intercept", \.intercept, of: .hostPattern),
        .list("no_proxy", \.noProxy, of: .host),
    ])
}

extension ClientTimeouts {
    static let section = Section<ClientTimeouts>([
        .value("head", \.head, .span),
        .value("body", \.body, .span),
        .value("idle", \.idle, .span),
        .value("tunnel", \.tunnel, .span),
    ])
}

extension ClientLimits {
    static let section = Section<ClientLimits>([
        .value("head", \.headBytes, .limit),
        .value("field", \.fieldBytes, .limit),
        .value("fields", \.fields, .whole(1...10_000)),
        .value("target", \.targetBytes, .limit),
        .value("body_rate", \.bodyRate, .limit),
        .value("connections", \.connections, .whole(1...1_000_000)),
        .value("connections_per_address", \.connectionsPerAddress, .whole(1...1_000_000)),
        .value("requests_per_connection", \.requestsPerConnection, .whole(1...1_000_000_000)),
    ])
}

extension AdminSettings {
    static let section = Section<AdminSettings>([
        .value("listen", \.listen, .listener),
        .list("hosts", \.hosts, of: .host),
    ])
}
