// Decides whether a CONNECT tunnel is decrypted: only for hosts that the operator has named (docs/reference/behaviour.md#https
// `intercept`).

/// The treatment of a tunnel, with its reason.
package enum Interception: String, Hashable, Sendable, CaseIterable {
    /// Decrypted: a declared upstream with `intercept: true` or a matching entry in `proxy.intercept`.
    case declared
    /// Decrypted: an entry of `proxy.intercept` matches the undeclared host.
    case listed
    /// Decrypted: `defaults.intercept` is set and the host is not declared.
    case everyHost
    /// Not decrypted: the host is declared without interception.
    case declaredOpaque
    /// Not decrypted: no setting names the host.
    case notNamed

    /// True if the tunnel is decrypted.
    package var isDecrypted: Bool { self == .declared || self == .listed || self == .everyHost }

    /// True if a client that does not trust this proxy's certificate gets an undecrypted tunnel instead
    /// (docs/security-model.md#interception). False for a
    /// declared upstream: its operator relies on every read being cached and every write being queued, and a bypass would silently lose
    /// writes the next time the upstream is unreachable. There the client's own TLS error remains visible.
    package var yields: Bool { self == .listed || self == .everyHost }
}

extension Configuration {
    /// The treatment of `CONNECT host:port`. `host` is lower case, an IPv6 address without brackets.
    package func interception(host: String, port: Int) -> Interception {
        // The host of the setup page exists only here.
        if host == SetupDocument.host { return .listed }
        let origin = OriginAddress(scheme: .https, host: host, port: port)
        let declared = upstreams.filter { $0.origin == origin }
        let isListed = proxy.intercept.contains { HostPattern($0)?.matches(host: host, port: port) == true }
        if !declared.isEmpty { return isListed || declared.contains(where: \.intercept) ? .declared : .declaredOpaque }
        if isListed { return .listed }
        return defaults.intercept ? .everyHost : .notNamed
    }

    /// True if certificates are issued: for tunnels that are decrypted, for gateways with TLS, or for passwords from other machines.
    package var needsAuthority: Bool {
        interceptsAnything || upstreams.contains { $0.gatewaySettings?.tls == .auto } || takesRemotePasswords
    }

    /// True if clients of other machines send passwords to the proxy.
    private var takesRemotePasswords: Bool { proxy.auth != nil && HostAndPort(proxy.listen)?.isLoopback == false }

    /// True if the configuration decrypts any tunnels.
    package var interceptsAnything: Bool {
        defaults.intercept || !proxy.intercept.isEmpty || upstreams.contains { $0.intercept && $0.origin.scheme == .https }
    }
}
