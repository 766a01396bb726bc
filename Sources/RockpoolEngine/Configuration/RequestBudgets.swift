// The budgets of all upstreams: how many requests, how much traffic, at which hours (docs/caching.md#budgets).
import Glibc
import HTTPTypes
package import RockpoolCore
import ServiceLifecycle
import Synchronization

/// Decides what may be sent beyond the requests that clients wait for.
package final class RequestBudgets: Sendable {
    private struct Entry {
        var rule: RateLimitRule
        var budget: RequestBudget
    }

    private let entries = Mutex<[String: Entry]>([:])
    /// True while NetworkManager calls the connection metered.
    private let isMetered = Atomic<Bool>(false)

    package init() {}

    /// Counts a request that is sent.
    func spend(_ upstream: Upstream?, on request: RequestHead, now: Timestamp) {
        change(upstream, now: now) { $0.spend(of: BudgetClient(request.fields), now: now) }
    }

    /// Takes account of an answer.
    func learn(from answer: ResponseHead, to request: RequestHead, of upstream: Upstream?, now: Timestamp) {
        change(upstream, now: now) {
            $0.learn(from: answer.fields, status: answer.status, of: BudgetClient(request.fields), now: now)
        }
    }

    /// Returns the time until which a request waits; nil if it may be sent now.
    /// - Parameter secrets: those of its client; nil for requests of Rockpool itself.
    func wait(for purpose: RequestPurpose, with secrets: HTTPFields?, at upstream: Upstream?, now: Timestamp) -> Timestamp? {
        change(upstream, now: now) { $0.wait(for: purpose, of: secrets.map { BudgetClient($0) }, now: now) } ?? nil
    }

    /// Counts a queued write if it may be sent now, else returns the time until which it waits, and whether all others do.
    func take(with secrets: HTTPFields, at upstream: Upstream, now: Timestamp) -> (until: Timestamp, holdsAll: Bool)? {
        let client = BudgetClient(secrets)
        return change(upstream, now: now) { budget -> (until: Timestamp, holdsAll: Bool)? in
            if let until = budget.waitOfAll(for: .replay, now: now) { return (until, true) }
            if let until = budget.wait(for: .replay, of: client, now: now) { return (until, false) }
            budget.spend(of: client, now: now)
            return nil
        } ?? nil
    }

    /// Records what NetworkManager says.
    func setMetered(_ isMetered: Bool) { self.isMetered.store(isMetered, ordering: .relaxed) }

    /// True if the connection to an upstream is metered.
    package func isMetered(_ upstream: Upstream) -> Bool {
        switch upstream.metered {
        case .yes: true
        case .no: false
        case .auto: isMetered.load(ordering: .relaxed)
        }
    }

    /// True if large transfers that no client waits for may be made at `moment`.
    package func permitsLargeTransfers(_ upstream: Upstream, at moment: Timestamp) -> Bool {
        guard !isMetered(upstream) else { return false }
        return upstream.transferHours?.contains(minute: Self.minuteOfDay(at: moment)) ?? true
    }

    private func change<Result>(_ upstream: Upstream?, now: Timestamp, _ change: (inout RequestBudget) -> Result) -> Result? {
        guard let upstream, let rule = upstream.rateLimit else { return nil }
        return entries.withLock { entries in
            var entry = entries[upstream.name] ?? Entry(rule: rule, budget: RequestBudget(rule, now: now))
            if entry.rule != rule { entry = Entry(rule: rule, budget: RequestBudget(rule, now: now)) }
            defer { entries[upstream.name] = entry }
            return change(&entry.budget)
        }
    }

    /// The minute of the day in local time.
    private static func minuteOfDay(at moment: Timestamp) -> Int {
        var seconds = time_t(moment.milliseconds / 1000)
        var local = unsafe tm()
        unsafe localtime_r(&seconds, &local)
        return unsafe Int(local.tm_hour) * 60 + Int(local.tm_min)
    }
}

/// Stored responses where the budget of an upstream is spent (docs/caching.md#budgets).
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

/// Asks NetworkManager whether the connection is metered, while a configuration leaves that to it, and keeps `RequestBudgets` informed.
package final class MeteredWatch: Service {
    private static let period = Duration.seconds(30)

    private let budgets: RequestBudgets
    private let active: ActiveConfiguration
    /// Returns NetworkManager's answer; nil without one.
    private let ask: @Sendable () async -> Bool?

    package init(budgets: RequestBudgets, active: ActiveConfiguration, ask: @escaping @Sendable () async -> Bool?) {
        (self.budgets, self.active, self.ask) = (budgets, active, ask)
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                if self.active.configuration.upstreams.contains(where: { $0.metered == .auto }) {
                    self.budgets.setMetered(await self.ask() ?? false)
                }
                try? await Task.sleep(for: Self.period)
            }
        }
    }
}
