// Which gateway of a site, or which parent proxy, a request tries: those that answer, in which order, and whose answer counts
// (docs/fleet.md#caches).
import HTTPTypes

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

// MARK: - Turns

/// The order in which each request tries the parents of a rule. With weights, turns are spread evenly: 2 and 1 give the turns 1, 2, 1
/// (docs/reference/configuration.md#several-parents).
package struct ParentTurns: Sendable {
    /// Parents whose turns are counted at most; beyond it the count begins anew.
    private static let limit = 1000

    /// What each parent has in hand, by rule and URL: its weight for each request, less the weights of all for each turn.
    private var credits: [String: Int] = [:]

    package init() {}

    /// Returns the parents to try, in order. Those that are down come last: where all are, one of them may still answer.
    package mutating func next(of settings: ParentSettings, isUp: (String) -> Bool) -> [ParentSettings] {
        let all = settings.all
        let up = all.filter { isUp($0.url) }
        let down = all.filter { !isUp($0.url) }
        guard settings.choose == .weight, up.count > 1 else { return up + down }
        if credits.count > Self.limit { credits = [:] }
        let rule = all.map(\.url).joined(separator: " ")
        let keys = up.map { "\(rule) \($0.url)" }
        for (key, parent) in zip(keys, up) { credits[key, default: 0] += parent.weight }
        let order = up.indices.sorted { (credits[keys[$0]] ?? 0, -$0) > (credits[keys[$1]] ?? 0, -$1) }
        credits[keys[order[0]], default: 0] -= up.reduce(0) { $0 + $1.weight }
        return order.map { up[$0] } + down
    }
}

/// How a parent of a rule stands (docs/reference/admin-api.md#status).
package struct ParentStanding: Hashable, Sendable {
    /// The name of the upstream, or the hosts of the rule.
    package let of: String
    package let url: String
    /// Nil for one that is up, for all that is known.
    package let downSince: Timestamp?
    /// True if requests take it now.
    package let isUsed: Bool

    /// Returns the standing of each parent, in their order. The first that is up is used, or with weights all that are; where none is, all are
    /// tried.
    package static func all(of name: String, _ settings: ParentSettings, health: ParentHealth) -> [ParentStanding] {
        let up = settings.all.filter { health.isUp($0.url) }
        let used = up.isEmpty ? settings.all : settings.choose == .weight ? up : [up[0]]
        return settings.all.map { parent in
            ParentStanding(
                of: name, url: parent.url, downSince: health.downSince(parent.url), isUsed: used.contains { $0.url == parent.url })
        }
    }
}

extension TransferFailure {
    /// True if the parent proxy itself could not be reached.
    package var isOfParent: Bool { sent == .no && (kind == .refused || kind == .connectTimeout) }

    /// True if another parent may do better: nothing was sent, and neither this side nor a certificate is the reason.
    package var mayTakeAnotherParent: Bool { isOfParent || sent == .no && (kind == .dns || kind == .reset) }
}

// MARK: - The ring of a site

/// The gateways of one site, by rendezvous hashing. Every one of them finds the same order for a key, whatever the order of its list.
package struct ParentRing: Hashable, Sendable {
    package let nodes: [String]
    /// The name of this gateway among them; nil if it is none of them.
    package let own: String?

    /// - Parameter nodes: addresses, `own` included: a ring without it would give its keys to others.
    package init(nodes: [String], own: String?) { (self.nodes, self.own) = (nodes, own) }

    /// Returns the gateways by their weight for a key, the owner first. Without one of them, the order of the others is the same.
    package func order(for key: String) -> [String] {
        nodes.map { (node: $0, weight: Self.weight(of: $0, for: key)) }
            .sorted { ($0.weight, $0.node) > ($1.weight, $1.node) }.map(\.node)
    }

    /// FNV-1a, and the finalizer of SplitMix64, which spreads names that differ in one digit.
    private static func weight(of node: String, for key: String) -> UInt64 {
        var names = FNV1a()
        names.add(node.utf8)
        names.add(0x0A)
        names.add(key.utf8)
        var hash = names.value
        hash = (hash ^ (hash >> 30)) &* 0xBF58_476D_1CE4_E5B9
        hash = (hash ^ (hash >> 27)) &* 0x94D0_49BB_1331_11EB
        return hash ^ (hash >> 31)
    }
}

// MARK: - Answers

/// Judges answers of gateways.
package enum ParentAnswer: Hashable, Sendable {
    /// It may stand for the origin's answer.
    case usable
    /// The gateway has no such answer now: the origin is asked.
    case unusable
    /// It is not the answer of a gateway.
    case foreign

    /// - Parameter greatestAge: seconds.
    package static func judge(_ head: ResponseHead, greatestAge: Int64) -> ParentAnswer {
        guard let member = lastMember(of: .cacheStatus, in: head.fields), isOurs(member) else { return .foreign }
        // With `Proxy-Status` the gateway has made the answer, or serves a stored one because the origin does not answer it.
        if let status = lastMember(of: .proxyStatus, in: head.fields), isOurs(status) { return .unusable }
        let isStale = member.split(separator: ";").contains { $0.trimmingOWS().hasPrefix("ttl=-") }
        let isGenerated = member.split(separator: ";").contains { $0.trimmingOWS() == "detail=generated" }
        let age = head.fields[.age].flatMap { Int64($0) } ?? 0
        return isStale || isGenerated || age > greatestAge ? .unusable : .usable
    }

    /// True if a probe was answered by a gateway.
    package static func isAlive(_ head: ResponseHead) -> Bool {
        (200...299).contains(head.status) && lastMember(of: .cacheStatus, in: head.fields).map(isOurs) == true
    }

    private static func isOurs(_ member: Substring) -> Bool { member == "rockpool" || member.hasPrefix("rockpool;") }

    private static func lastMember(of name: HTTPField.Name, in fields: HTTPFields) -> Substring? {
        // A gateway appends its member as a line of its own, and its texts have no comma outside of quotes.
        fields[values: name].last.map { Substring($0).trimmingOWS() }
    }
}

/// The last write of this gateway to each origin, for a limited number of origins: what another one has kept from before may lack it.
package struct OwnWriteTimes: Sendable {
    /// Origins at most.
    private static let limit = 1000

    private var times: [OriginAddress: Timestamp] = [:]
    /// The last write to an origin that is not listed.
    private var others: Timestamp

    /// - Parameter startedAt: writes before it are not known, so there may have been one just then.
    package init(startedAt: Timestamp) { others = startedAt }

    package mutating func note(_ origin: OriginAddress, at moment: Timestamp) {
        times[origin] = max(moment, times[origin] ?? moment)
        guard times.count > Self.limit, let oldest = times.min(by: { $0.value < $1.value }) else { return }
        times[oldest.key] = nil
        others = max(others, oldest.value)
    }

    /// Returns the greatest age in seconds of a response of the origin that has seen every write of this gateway.
    package func greatestAge(of origin: OriginAddress, now: Timestamp) -> Int64 {
        // Ages are whole seconds, and a response may be as old as its transfer.
        max(0, (now - max(times[origin] ?? others, .distantPast)).seconds - 1)
    }
}
