// Which of several parent proxies a request tries first (docs/reference/configuration.md#several-parents).

/// The order in which each request tries the parents of a rule. With weights, turns are spread evenly: 2 and 1 give the turns 1, 2, 1.
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
