// Keeps the requests to one upstream within its budget (docs/caching.md#budgets).
package import HTTPTypes

/// A bucket of requests that fills evenly, what the upstream has announced, and the pause that it demands.
package struct RequestBudget: Sendable {
    /// A longer pause is not believed.
    private static let longestPause = TimeSpan.hours(24)

    private let rule: RateLimitRule
    /// Requests that may be sent now; below 0 after requests of clients beyond the budget.
    private var left: Double
    private var filledAt: Timestamp
    private var announced: RateLimitFields?
    /// The most that the upstream has announced within a period.
    private var announcedMost = 0
    private var pausedUntil = Timestamp.distantPast

    /// A full bucket.
    package init(_ rule: RateLimitRule, now: Timestamp) {
        self.rule = rule
        left = Double(rule.requests ?? 0)
        filledAt = now
    }

    /// Counts a request that is sent.
    package mutating func spend(now: Timestamp) {
        fill(now: now)
        // Clients may overdraw one period at most.
        if let requests = rule.requests { left = max(left - 1, -Double(requests)) }
        if let known = announced { announced?.remaining = max(0, known.remaining - 1) }
    }

    /// Takes account of an answer.
    package mutating func learn(from fields: HTTPFields, status: Int, now: Timestamp) {
        if let fields = RateLimitFields(fields, now: now) {
            if announced.map({ $0.resetAt <= now }) ?? true { announcedMost = 0 }
            announced = fields
            announcedMost = max(announcedMost, fields.remaining + 1)
        }
        guard status == 429 || status == 503, let moment = RetryAfter.parse(fields, now: now) else { return }
        pausedUntil = min(max(pausedUntil, moment), now + Self.longestPause)
    }

    /// Returns the time until which a request for this purpose waits; nil if it may be sent now. A request of a client never has to wait;
    /// the time says that a stored response is preferred.
    package func wait(for purpose: RequestPurpose, now: Timestamp) -> Timestamp? {
        var until: Timestamp?
        if pausedUntil > now { until = pausedUntil }
        if let announced, announced.resetAt > now {
            let reserve = announcedMost * purpose.reservePercent / 100
            if announced.remaining <= reserve { until = max(until ?? now, announced.resetAt) }
        }
        if let requests = rule.requests {
            let needed = 1 + Double(requests * purpose.reservePercent) / 100
            let available = filled(now: now)
            let most = min(needed, Double(requests))
            if available < most { until = max(until ?? now, now + time(toFill: most - available, of: requests)) }
        }
        return until
    }

    private mutating func fill(now: Timestamp) {
        left = filled(now: now)
        filledAt = now
    }

    /// The bucket's content now. A clock that was set back fills nothing.
    private func filled(now: Timestamp) -> Double {
        guard let requests = rule.requests else { return 0 }
        let elapsed = Double(max(0, (now - filledAt).milliseconds))
        return min(Double(requests), left + elapsed * Double(requests) / Double(max(1, rule.per.milliseconds)))
    }

    private func time(toFill missing: Double, of requests: Int) -> TimeSpan {
        .milliseconds(Int64((missing * Double(rule.per.milliseconds) / Double(requests)).rounded(.up)) + 1)
    }
}
