// Clients that would not take our certificate, so that somebody can be told what to do about it (security.md §4 *interception scope*).

/// One client that ended a TLS handshake because of our certificate.
package struct UntrustingClient: Hashable, Sendable {
    /// The host it wanted, as CONNECT named it.
    package var host: String
    /// The client's address.
    package var client: String
    /// When it last did.
    package var at: Timestamp
    /// The alert it sent, such as `unknown_ca`; `closed` when it said nothing.
    package var alert: String
    /// How often it did.
    package var count: Int
    /// Until when its tunnels to the host are passed undecrypted; nil when they are not.
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

/// The latest of them, one for each client and host.
package struct UntrustingClients: Hashable, Sendable {
    /// Older ones are forgotten past so many.
    package static let limit = 64
    /// How long a client that does not trust us is left alone with a host. Then it is tried again: it may have learnt to.
    package static let bypass = TimeSpan.minutes(10)
    /// The alerts of those who do not know the authority or pin another. A client that says nothing may have left for any reason, and
    /// other alerts mean a fault in the certificate, which a bypass would hide.
    private static let distrust: Set<String> = ["unknown_ca", "bad_certificate", "certificate_unknown"]

    /// The latest first.
    package private(set) var list: [UntrustingClient] = []

    package init() {}

    /// A client has refused.
    /// - Parameter mayBypass: whether the host may be left undecrypted for it.
    /// - Returns: whether that is news, and whether it is bypassed now.
    package mutating func note(
        host: String, client: String, at now: Timestamp, alert: String, mayBypass: Bool = false
    ) -> (isNews: Bool, isBypassed: Bool) {
        let known = list.firstIndex { $0.host == host && $0.client == client }.map { list.remove(at: $0) }
        // Another connection of the same client that just closes takes nothing back.
        let before = mayBypass ? known?.bypassedUntil.flatMap { $0 > now ? $0 : nil } : nil
        let until = mayBypass && Self.distrust.contains(alert) ? now + Self.bypass : before
        list.insert(
            UntrustingClient(host: host, client: client, at: now, alert: alert, count: (known?.count ?? 0) + 1, bypassedUntil: until), at: 0
        )
        if list.count > Self.limit { list.removeLast() }
        return (known == nil, until != nil)
    }

    /// Whether this client's tunnels to the host are passed undecrypted now. A clock that was set back ends it.
    package func isBypassed(host: String, client: String, at now: Timestamp) -> Bool {
        guard let entry = list.first(where: { $0.host == host && $0.client == client }), let until = entry.bypassedUntil else {
            return false
        }
        return entry.at <= now && now < until
    }

    /// A client has taken our certificate: what it refused before is settled.
    package mutating func forget(host: String, client: String) {
        list.removeAll { $0.host == host && $0.client == client }
    }
}
