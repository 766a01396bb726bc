// Ports that clients may reach through the proxy (RFC 9110 §9.3.6; docs/reference/behaviour.md#targets `connect_ports`,
// docs/security-model.md#ports).

/// Prevents access to mail servers and databases through the proxy. Declared origins are always allowed.
package struct PortPolicy: Hashable, Sendable {
    // Arrays, because both are short and the policy is created per connection: they need no hashing.
    private let connectPorts: [Int]
    private let declared: [OriginAddress]

    /// - Parameters:
    ///   - connectPorts: The configured ports.
    ///   - declared: The origins of the upstreams.
    package init(connectPorts: [Int], declared: [OriginAddress]) {
        self.connectPorts = connectPorts
        self.declared = declared
    }

    /// Throws a 403 unless a tunnel to the port is allowed.
    package func checkTunnel(host: String, port: Int) throws(Refusal) {
        let origins = [OriginAddress.Scheme.http, .https].map { OriginAddress(scheme: $0, host: host, port: port) }
        let isDeclared = origins.contains(where: declared.contains)
        guard connectPorts.contains(port) || isDeclared else { throw Self.forbidden("no tunnels to port \(port)") }
    }

    /// Throws a 403 unless a forwarded request to the origin's port is allowed.
    package func checkForwarding(to origin: OriginAddress) throws(Refusal) {
        let isOrdinary = origin.port == 80 || origin.port == 443 || origin.port >= 1024 && !Self.notHTTP.contains(origin.port)
        guard isOrdinary || declared.contains(origin) else { throw Self.forbidden("no requests to port \(origin.port)") }
    }

    private static func forbidden(_ detail: String) -> Refusal {
        Refusal(status: 403, problem: "forbidden-target", detail: detail)
    }

    /// Services on ports above 1023 with line-based text protocols, which an HTTP request could be crafted to match: NFS, MySQL, RDP,
    /// PostgreSQL, AMQP, X11, Redis, IRC, memcached.
    private static let notHTTP: Set<Int> = [2049, 3306, 3389, 5432, 5672, 6000, 6379, 6667, 11211]
}
