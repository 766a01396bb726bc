// How long to wait before trying again: full jitter, with a floor where the upstream asked for quiet (outbox.md §2.5).

/// Waits between attempts. `random` is a uniform value in 0..<1, given by the caller.
package enum Backoff {
    /// The first wait is at most this long.
    package static let base = TimeSpan.milliseconds(500)
    /// No wait after an answer is longer.
    package static let cap = TimeSpan.seconds(60)
    /// The cap while requests do not get through: an upstream that returns is served within five seconds.
    package static let unsentCap = TimeSpan.seconds(2)
    /// The cap after a lost answer that may safely be sent again.
    package static let lostCap = TimeSpan.seconds(10)
    /// The least wait when throttled: full jitter alone can collapse to nothing.
    package static let throttleFloor = TimeSpan.seconds(1)
    /// What jitter adds to the floor at most.
    package static let throttleCap = TimeSpan.seconds(8)
    /// No `Retry-After` holds longer; a server's mistake must not end a queue.
    package static let retryAfterCap = TimeSpan.hours(24)
    /// What jitter adds to a `Retry-After` at most.
    private static let retryAfterSpread = TimeSpan.seconds(30)
    /// No wait is longer.
    package static let longest = retryAfterCap + retryAfterSpread

    /// Full jitter: uniform in 0 … min(`cap`, `base` · 2^`attempt`), `attempt` counted from 0.
    package static func fullJitter(attempt: Int, cap: TimeSpan = Backoff.cap, random: Double) -> TimeSpan {
        let doublings = min(max(attempt, 0), 32)
        let ceiling = min(cap.milliseconds, base.milliseconds.multipliedClamped(by: 1 << Int64(doublings)))
        return .milliseconds(portion(of: ceiling, random))
    }

    /// After 429, 503 and the like: at `retryAfter` when the upstream named a moment, else the floor; jitter is added, never taken away.
    package static func throttled(until retryAfter: Timestamp?, attempt: Int, now: Timestamp, random: Double) -> Timestamp {
        guard let retryAfter else {
            return now + throttleFloor + fullJitter(attempt: attempt, cap: throttleCap, random: random)
        }
        let wait = min(max(retryAfter - now, .zero), retryAfterCap)
        let spread = min(max(wait.milliseconds / 10, base.milliseconds), retryAfterSpread.milliseconds)
        return now + wait + .milliseconds(portion(of: spread, random))
    }

    private static func portion(of milliseconds: Int64, _ random: Double) -> Int64 {
        Int64(Double(milliseconds) * min(max(random, 0), 1))
    }
}
