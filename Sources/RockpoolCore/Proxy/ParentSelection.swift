// Which gateways of a site, or parent proxies, answer: down by a failure, up by a probe (docs/fleet.md#caches).

/// The gateways that are down, with their next probes. Time alone brings none back.
package struct ParentHealth: Sendable {
    private struct Outage {
        let since: Timestamp
        var wait: TimeSpan
        var nextProbeAt: Timestamp
        /// True while a probe is under way.
        var isProbed = false
    }

    private static let firstWait = TimeSpan.seconds(1)
    private static let longestWait = TimeSpan.seconds(30)

    private var outages: [String: Outage] = [:]

    package init() {}

    /// True if none is down.
    package var isWell: Bool { outages.isEmpty }

    package func isUp(_ node: String) -> Bool { outages[node] == nil }

    /// The time of the failure since which a gateway is down; nil for one that is up.
    package func downSince(_ node: String) -> Timestamp? { outages[node]?.since }

    /// Records that a request has failed.
    /// - Returns: true if the gateway was up.
    package mutating func fail(_ node: String, now: Timestamp) -> Bool {
        guard outages[node] == nil else { return false }
        outages[node] = Outage(since: now, wait: Self.firstWait, nextProbeAt: now + Self.firstWait)
        return true
    }

    /// Returns the gateways whose probe is due; each is to be reported by `probed`.
    /// - Parameter nodes: the gateways of the configuration; others are forgotten.
    package mutating func takeDue(among nodes: [String], now: Timestamp) -> [String] {
        outages = outages.filter { nodes.contains($0.key) }
        let due = outages.filter { node, outage in
            // A clock that was set back must not end the probes.
            !outage.isProbed && (now >= outage.nextProbeAt || outage.nextProbeAt - now > outage.wait)
        }.map(\.key)
        for node in due { outages[node]?.isProbed = true }
        return due.sorted()
    }

    /// Records the outcome of a probe.
    /// - Returns: true if the gateway is up again.
    package mutating func probed(_ node: String, isAnswered: Bool, now: Timestamp) -> Bool {
        guard var outage = outages[node] else { return false }
        guard !isAnswered else {
            outages[node] = nil
            return true
        }
        outage.wait = min(outage.wait + outage.wait, Self.longestWait)
        (outage.nextProbeAt, outage.isProbed) = (now + outage.wait, false)
        outages[node] = outage
        return false
    }
}
