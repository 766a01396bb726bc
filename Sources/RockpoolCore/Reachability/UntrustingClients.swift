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

    package init(host: String, client: String, at: Timestamp, alert: String, count: Int = 1) {
        self.host = host
        self.client = client
        self.at = at
        self.alert = alert
        self.count = count
    }
}

/// The latest of them, one for each client and host.
package struct UntrustingClients: Hashable, Sendable {
    /// Older ones are forgotten past so many.
    package static let limit = 64

    /// The latest first.
    package private(set) var list: [UntrustingClient] = []

    package init() {}

    /// A client has refused.
    /// - Returns: whether that is news.
    package mutating func note(host: String, client: String, at now: Timestamp, alert: String) -> Bool {
        let known = list.firstIndex { $0.host == host && $0.client == client }.map { list.remove(at: $0) }
        list.insert(UntrustingClient(host: host, client: client, at: now, alert: alert, count: (known?.count ?? 0) + 1), at: 0)
        if list.count > Self.limit { list.removeLast() }
        return known == nil
    }

    /// A client has taken our certificate: what it refused before is settled.
    package mutating func forget(host: String, client: String) {
        list.removeAll { $0.host == host && $0.client == client }
    }
}
