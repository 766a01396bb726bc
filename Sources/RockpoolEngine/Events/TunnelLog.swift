// The tunnels that were passed on unread: how many, to which hosts, how much (docs/reference/admin-api.md#status `tunnels`).
package import RockpoolCore
import Synchronization

/// Counts tunnels, and records each in the ring of exchanges.
package final class TunnelLog: Sendable {
    /// The tunnels to one host since the start.
    package struct Host: Hashable, Sendable {
        package var tunnels: Int64 = 0
        package var refused: Int64 = 0
        package var sent: Int64 = 0
        package var received: Int64 = 0
        /// The number of the last change, which the hosts that were used last have the greatest of.
        fileprivate var usedAt: UInt64 = 0
    }

    /// The most hosts that are told apart.
    private static let limit = 200

    private let ring: ExchangeRing
    private let active: ActiveConfiguration
    private let now: @Sendable () -> Timestamp
    private let state = Mutex<(hosts: [String: Host], changes: UInt64)>(([:], 0))

    init(ring: ExchangeRing, active: ActiveConfiguration, now: @escaping @Sendable () -> Timestamp) {
        (self.ring, self.active, self.now) = (ring, active, now)
    }

    /// The record of a tunnel that begins.
    package func begin(host: String, port: Int) -> (record: TunnelRecord, at: Timestamp) {
        let upstream = active.routes.upstreams.first { $0.origin.host == host && $0.origin.port == port }
        return (TunnelRecord(host: host, port: port, reason: upstream.map { .declared($0.name) } ?? .undeclared), now())
    }

    /// Records a tunnel that has ended, or could not be opened.
    package func note(_ tunnel: TunnelRecord, at moment: Timestamp) {
        state.withLock { state in
            state.changes += 1
            if state.hosts[tunnel.host] == nil, state.hosts.count >= Self.limit,
                let oldest = state.hosts.min(by: { $0.value.usedAt < $1.value.usedAt })
            {
                state.hosts[oldest.key] = nil
            }
            var host = state.hosts[tunnel.host] ?? Host()
            if tunnel.failure == nil { host.tunnels += 1 } else { host.refused += 1 }
            host.sent += tunnel.sent
            host.received += tunnel.received
            host.usedAt = state.changes
            state.hosts[tunnel.host] = host
        }
        let represents = ring.admit(isNotable: true, at: now())
        if represents > 0 { ring.append(.tunnel(tunnel), at: moment, represents: represents) }
    }

    /// The hosts, those with the most tunnels first.
    package var hosts: [(name: String, host: Host)] {
        state.withLock { $0.hosts }.map { ($0.key, $0.value) }.sorted {
            ($0.1.tunnels + $0.1.refused, $1.0) > ($1.1.tunnels + $1.1.refused, $0.0)
        }
    }
}

/// The clients that did not trust the proxy's certificate authority.
package final class UntrustingTable: Sendable {
    private let state = Mutex(UntrustingClients())

    init() {}

    /// The latest first, at most `UntrustingClients.limit`.
    package var list: [UntrustingClient] { state.withLock { $0.list } }

    /// See `UntrustingClients.note`.
    package func note(
        host: String, client: String, at now: Timestamp, alert: String, mayBypass: Bool
    ) -> (isNews: Bool, isBypassed: Bool) {
        state.withLock { $0.note(host: host, client: client, at: now, alert: alert, mayBypass: mayBypass) }
    }

    /// See `UntrustingClients.isBypassed`.
    package func isBypassed(host: String, client: String, at now: Timestamp) -> Bool {
        state.withLock { $0.isBypassed(host: host, client: client, at: now) }
    }

    package func forget(host: String, client: String) {
        state.withLock { $0.forget(host: host, client: client) }
    }
}
