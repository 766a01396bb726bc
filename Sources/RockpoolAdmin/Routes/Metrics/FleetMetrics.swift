// The figures of a fleet and of the gateways of a site (docs/reference/metrics.md#fleet).
import RockpoolCore
import RockpoolEngine
import RockpoolStore

/// How this node stands among others.
struct FleetMetrics {
    /// Nil without a fleet.
    let fleet: FleetStanding?
    /// The number of operations that this node has claimed.
    let claimed: Int
    let parents: SiteParents

    func add(to metrics: inout MetricsText) {
        if let fleet { add(fleet, to: &metrics) }
        let states = parents.states
        guard !states.isEmpty else { return }
        metrics.add(
            "rockpool_fleet_parent_up", kind: .gauge, help: "1 while reads go to this gateway of the site.", by: "parent",
            values: states.map { ($0.node, $0.isUp ? 1 : 0) })
        metrics.add(
            "rockpool_fleet_parent_answers_total", kind: .counter, help: "Responses of other gateways in place of origins.",
            value: parents.taken)
    }

    private func add(_ fleet: FleetStanding, to metrics: inout MetricsText) {
        metrics.add(
            "rockpool_fleet_database_up", kind: .gauge, help: "1 while this node uses the shared database.",
            value: fleet.absence == nil ? 1 : 0)
        if let age = fleet.leaseAge {
            metrics.add(
                "rockpool_fleet_lease_age_seconds", kind: .gauge, help: "Time since the last renewal of this node's lease.",
                value: age / .seconds(1))
        }
        metrics.add(
            "rockpool_fleet_feed_age_seconds", kind: .gauge, help: "Time since this node knew every change of the others.",
            value: fleet.feedAge / .seconds(1))
        metrics.add("rockpool_fleet_claimed", kind: .gauge, help: "Operations that this node has in flight.", value: claimed)
        metrics.add("rockpool_fleet_held", kind: .gauge, help: "Writes that this node keeps until the database is back.", value: fleet.held)
        metrics.add(
            "rockpool_fleet_behind", kind: .gauge, help: "Changes of others that this node did not have when it looked last.",
            value: Int(fleet.behind))
        metrics.add(
            "rockpool_fleet_transactions_total", kind: .counter, help: "How often this node had the lock of the fleet.",
            value: fleet.transactions)
        metrics.add(
            "rockpool_fleet_lock_wait_seconds_total", kind: .counter, help: "Time until this node had the lock of the fleet.",
            value: fleet.lockWait / .seconds(1))
        metrics.add("rockpool_fleet_nodes", kind: .gauge, help: "Nodes that hold their lease.", value: fleet.nodes)
        metrics.add("rockpool_fleet_fenced_total", kind: .counter, help: "How often others took over from this node.", value: fleet.fenced)
    }
}
