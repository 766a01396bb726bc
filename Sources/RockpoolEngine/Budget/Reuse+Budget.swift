// Stored responses where the budget of an upstream is spent (docs/caching.md#budgets).
import RockpoolCore

extension Reuse {
    /// True if a stored response could be served without its upstream, and the client demands no new one.
    var mayWait: Bool {
        if case .validate(_, _, _, let reason) = self { reason == .stale || reason == .networkFirst } else { false }
    }

    /// Returns the stale response that another decision, for an upstream that is away, would serve; else this decision.
    func orStale(_ absent: Reuse) -> Reuse {
        if case .stale(let index, let freshness, .offline) = absent { .stale(index, freshness, .budget) } else { self }
    }
}

extension ReuseContext {
    /// The same rules while the upstream is away.
    var withoutUpstream: ReuseContext {
        var rules = self
        rules.isReachable = false
        return rules
    }
}

extension RequestBudgets {
    /// True if the budget of a read's upstream is spent.
    func isSpent(for context: RequestContext, now: Timestamp) -> Bool {
        wait(
            for: context.isBehind ? .refresh : .live, with: context.identity.secrets, at: context.plan.upstream, now: now) != nil
    }
}
