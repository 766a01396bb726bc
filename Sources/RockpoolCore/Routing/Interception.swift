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

/// One client that aborted a TLS handshake because of this proxy's certificate.
package struct UntrustingClient: Hashable, Sendable {
    /// The host requested by CONNECT.
    package var host: String
    /// The client's address.
    package var client: String
    /// The time of the last rejection.
    package var at: Timestamp
    /// The alert it sent, such as `unknown_ca`; `closed` if it sent none.
    package var alert: String
    /// The number of rejections.
    package var count: Int
    /// The end of the period in which its tunnels to the host are not decrypted; nil without one.
    package var bypassedUntil: Timestamp?

    package init(host: String, client: String, at: Timestamp, alert: String, count: Int = 1, bypassedUntil: Timestamp? = nil) {
        self.host = host
        self.client = client
        self.at = at
        self.alert = alert
        self.count = count
        self.bypassedUntil = bypassedUntil
    }
}

/// The latest rejections, one for each client and host.
package struct UntrustingClients: Hashable, Sendable {
    /// Maximum number of records; older ones are dropped.
    package static let limit = 64
    /// The time for which a distrusting client's tunnels to the host are not decrypted. Then decryption is tried again, because the client
    /// may trust the certificate by then.
    package static let bypass = TimeSpan.minutes(10)
    /// The alerts of clients that do not know the certificate authority or pin another. A client that sends no alert may have closed for
    /// any reason, and other alerts indicate a faulty certificate, which a bypass would hide.
    private static let distrust: Set<String> = ["unknown_ca", "bad_certificate", "certificate_unknown"]

    /// The latest first.
    package private(set) var list: [UntrustingClient] = []

    package init() {}

    /// Records a rejection.
    /// - Parameter mayBypass: True if tunnels to the host may be left undecrypted for this client.
    /// - Returns: True if the record is new, and true if the client is bypassed now.
    package mutating func note(
        host: String, client: String, at now: Timestamp, alert: String, mayBypass: Bool = false
    ) -> (isNews: Bool, isBypassed: Bool) {
        let known = list.firstIndex { $0.host == host && $0.client == client }.map { list.remove(at: $0) }
        // A further connection of the same client that closes without an alert does not end the bypass.
        let before = mayBypass ? known?.bypassedUntil.flatMap { $0 > now ? $0 : nil } : nil
        let until = mayBypass && Self.distrust.contains(alert) ? now + Self.bypass : before
        list.insert(
            UntrustingClient(host: host, client: client, at: now, alert: alert, count: (known?.count ?? 0) + 1, bypassedUntil: until), at: 0
        )
        if list.count > Self.limit { list.removeLast() }
        return (known == nil, until != nil)
    }

    /// True if this client's tunnels to the host are currently not decrypted. A clock that was set back ends the bypass.
    package func isBypassed(host: String, client: String, at now: Timestamp) -> Bool {
        guard let entry = list.first(where: { $0.host == host && $0.client == client }), let until = entry.bypassedUntil else {
            return false
        }
        return entry.at <= now && now < until
    }

    /// Called when a client has accepted this proxy's certificate: removes its record for the host.
    package mutating func forget(host: String, client: String) {
        list.removeAll { $0.host == host && $0.client == client }
    }
}
