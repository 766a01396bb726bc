// The delay before the next attempt: full jitter, with a floor where the upstream throttles (docs/outbox.md#backoff).

/// Computes delays between attempts. `random` is a uniform value in 0..<1, given by the caller.
package enum Backoff {
    /// The upper bound of the first delay.
    package static let base = TimeSpan.milliseconds(500)
    /// The upper bound of delays after an answer.
    package static let cap = TimeSpan.seconds(60)
    /// The cap while requests do not reach the upstream, so that a returning upstream is served within five seconds.
    package static let unsentCap = TimeSpan.seconds(2)
    /// The cap after a lost answer when a resend is safe.
    package static let lostCap = TimeSpan.seconds(10)
    /// The minimum delay when throttled: full jitter alone can be near zero.
    package static let throttleFloor = TimeSpan.seconds(1)
    /// The maximum jitter added to the floor.
    package static let throttleCap = TimeSpan.seconds(8)
    /// The longest accepted `Retry-After`; a server's mistake must not block a queue for ever.
    package static let retryAfterCap = TimeSpan.hours(24)
    /// The maximum jitter added to a `Retry-After`.
    private static let retryAfterSpread = TimeSpan.seconds(30)
    /// The longest possible delay.
    package static let longest = retryAfterCap + retryAfterSpread

    /// Full jitter: uniform in 0 … min(`cap`, `base` · 2^`attempt`), `attempt` counted from 0.
    package static func fullJitter(attempt: Int, cap: TimeSpan = Backoff.cap, random: Double) -> TimeSpan {
        let doublings = min(max(attempt, 0), 32)
        let ceiling = min(cap.milliseconds, base.milliseconds.multipliedClamped(by: 1 << Int64(doublings)))
        return .milliseconds(portion(of: ceiling, random: random))
    }

    /// Returns the time of the retry after 429, 503 and similar: at `retryAfter` when the upstream named a time, otherwise after the floor;
    /// jitter only lengthens the delay.
    package static func throttled(until retryAfter: Timestamp?, attempt: Int, now: Timestamp, random: Double) -> Timestamp {
        guard let retryAfter else {
            return now + throttleFloor + fullJitter(attempt: attempt, cap: throttleCap, random: random)
        }
        let wait = min(max(retryAfter - now, .zero), retryAfterCap)
        let spread = min(max(wait.milliseconds / 10, base.milliseconds), retryAfterSpread.milliseconds)
        return now + wait + .milliseconds(portion(of: spread, random: random))
    }

    private static func portion(of milliseconds: Int64, random: Double) -> Int64 {
        Int64(Double(milliseconds) * min(max(random, 0), 1))
    }
}
