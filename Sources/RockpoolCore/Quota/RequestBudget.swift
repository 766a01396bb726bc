// Keeps the requests to one upstream within its budget (docs/caching.md#budgets).
package import HTTPTypes
import OrderedCollections

/// Whose requests an upstream counts together, as far as their credentials tell. Kept in memory only.
package struct BudgetClient: Hashable, Sendable {
    private let mark: Int?

    /// The client that has sent these fields.
    package init(_ fields: HTTPFields) {
        let token = fields[.authorization]
        let secrets = token.map { [$0] } ?? fields.filter { SecretFields.identifies($0.name) }.map(\.value).sorted()
        mark = secrets.isEmpty ? nil : secrets.hashValue
    }
}

/// A bucket of requests that fills evenly; and what the upstream has announced to each client, and the pause that it demands of it. What it
/// tells one client holds for no other: anybody may send a request that it answers with 429.
package struct RequestBudget: Sendable {
    /// A longer pause is not believed.
    private static let longestPause = TimeSpan.hours(24)
    private static let clientLimit = 256

    /// What the upstream has told one client.
    private struct Told: Sendable {
        var announced: RateLimitFields?
        /// The most that the upstream has announced within a period.
        var announcedMost = 0
        var pausedUntil = Timestamp.distantPast

        /// Returns the time until which a request waits; nil if it may be sent now.
        func wait(for purpose: RequestPurpose, now: Timestamp) -> Timestamp? {
            var until = pausedUntil > now ? pausedUntil : nil
            if let announced, announced.resetAt > now, announced.remaining <= announcedMost * purpose.reservePercent / 100 {
                until = max(until ?? now, announced.resetAt)
            }
            return until
        }
    }

    private let rule: RateLimitRule
    /// Requests that may be sent now; below 0 after requests of clients beyond the budget.
    private var left: Double
    private var filledAt: Timestamp
    /// The oldest first.
    private var told: OrderedDictionary<BudgetClient, Told> = [:]

    /// A full bucket.
    package init(_ rule: RateLimitRule, now: Timestamp) {
        self.rule = rule
        left = Double(rule.requests ?? 0)
        filledAt = now
    }

    /// Counts a request that is sent.
    package mutating func spend(of client: BudgetClient, now: Timestamp) {
        fill(now: now)
        // Clients may overdraw one period at most.
        if let requests = rule.requests { left = max(left - 1, -Double(requests)) }
        if let known = told[client]?.announced { told[client]?.announced?.remaining = max(0, known.remaining - 1) }
    }

    /// Takes account of an answer to a client.
    package mutating func learn(from fields: HTTPFields, status: Int, of client: BudgetClient, now: Timestamp) {
        let announced = RateLimitFields(fields, now: now)
        let pause = status == 429 || status == 503 ? RetryAfter.parse(fields, now: now) : nil
        guard announced != nil || pause != nil else { return }
        var known = told[client] ?? Told()
        if let announced {
            if known.announced.map({ $0.resetAt <= now }) ?? true { known.announcedMost = 0 }
            known.announced = announced
            known.announcedMost = max(known.announcedMost, announced.remaining + 1)
        }
        if let pause { known.pausedUntil = min(max(known.pausedUntil, pause), now + Self.longestPause) }
        if told[client] == nil, told.count >= Self.clientLimit { told.removeFirst() }
        told[client] = known
    }

    /// Returns the time until which a request for this purpose waits; nil if it may be sent now. A request of a client never has to wait;
    /// the time says that a stored response is preferred.
    /// - Parameter client: nil for requests of Rockpool itself, which wait for what any client was told.
    package func wait(for purpose: RequestPurpose, of client: BudgetClient?, now: Timestamp) -> Timestamp? {
        var until =
            if let client { told[client]?.wait(for: purpose, now: now) } else {
                told.values.compactMap { $0.wait(for: purpose, now: now) }.max()
            }
        if let full = waitOfAll(for: purpose, now: now) { until = max(until ?? full, full) }
        return until
    }

    /// Returns the time until which a request for this purpose waits, whosever it is: until the bucket holds enough.
    package func waitOfAll(for purpose: RequestPurpose, now: Timestamp) -> Timestamp? {
        guard let requests = rule.requests else { return nil }
        let needed = 1 + Double(requests * purpose.reservePercent) / 100
        let available = filled(now: now)
        let most = min(needed, Double(requests))
        return available < most ? now + time(toFill: most - available, of: requests) : nil
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

/// What an answer says about the rest of a budget.
package struct RateLimitFields: Hashable, Sendable {
    /// Requests that are left.
    package var remaining: Int
    /// When the full number is available again.
    package var resetAt: Timestamp

    /// Later times are not believed.
    private static let longest = TimeSpan.hours(24)
    /// A larger number is a Unix time, not a number of seconds.
    private static let leastUnixTime: Int64 = 1_000_000_000

    /// Parses the fields of an answer; nil without a complete statement. Of several policies the one with the least left counts.
    package init?(_ fields: HTTPFields, now: Timestamp) {
        let items = fields[values: .rateLimit].flatMap { $0.split(separator: ",") }
        let isOld = items.contains { $0.contains("remaining=") }
        let statements = isOld ? [items.joined(separator: ";")] : items.map(String.init)
        var found = statements.compactMap { Self.statement($0) }
        for (remaining, reset) in [
            (HTTPField.Name.rateLimitRemaining, HTTPField.Name.rateLimitReset), (.xRateLimitRemaining, .xRateLimitReset),
        ]
        where found.isEmpty {
            if let left = fields[remaining].flatMap({ Int64($0) }), let time = fields[reset].flatMap({ Int64($0) }) {
                found = [(left, time)]
            }
        }
        guard let least = found.min(by: { $0.remaining < $1.remaining }), least.remaining >= 0, least.reset >= 0 else { return nil }
        remaining = Int(clamping: least.remaining)
        let reset = least.reset >= Self.leastUnixTime ? Timestamp(milliseconds: least.reset * 1000) : now + .seconds(least.reset)
        resetAt = min(max(reset, now), now + Self.longest)
    }

    /// Returns the parameters `r` and `t`, or `remaining` and `reset`, of one policy.
    private static func statement(_ text: String) -> (remaining: Int64, reset: Int64)? {
        var values: [Substring: Int64] = [:]
        for part in text.split(separator: ";") {
            let pair = part.split(separator: "=", maxSplits: 1).map { $0.filter { $0 != " " } }
            if pair.count == 2, let number = Int64(pair[1]) { values[pair[0][...]] = number }
        }
        guard let remaining = values["r"] ?? values["remaining"], let reset = values["t"] ?? values["reset"] else { return nil }
        return (remaining, reset)
    }
}
