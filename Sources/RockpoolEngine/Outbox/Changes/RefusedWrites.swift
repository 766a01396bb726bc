// The writes that were refused because the outbox had no room for them: whoever looks at the server is to see it, not their clients alone.
import Logging
package import RockpoolCore
import Synchronization

/// Counts the refusals of the last minutes.
package final class RefusedWrites: Sendable {
    /// A refusal is shown for this time.
    private static let shownFor = TimeSpan.minutes(10)
    /// The time between two lines in the log.
    private static let silence = TimeSpan.minutes(1)

    private struct State {
        var count = 0
        var since = Timestamp.distantPast
        var last = Timestamp.distantPast
        var loggedAt = Timestamp.distantPast
        var why = ""
    }

    private let state = Mutex(State())

    /// Notes a refusal.
    /// - Parameter why: the words that its client was answered.
    func note(_ why: String, now: Timestamp, logger: Logger) {
        let count: Int? = state.withLock { state in
            if now - state.last >= Self.shownFor || now < state.last { state = State(since: now, loggedAt: state.loggedAt) }
            state.count += 1
            (state.last, state.why) = (now, why)
            guard now - state.loggedAt >= Self.silence || now < state.loggedAt else { return nil }
            state.loggedAt = now
            return state.count
        }
        guard let count else { return }
        logger.warning("writes are refused: the outbox has no room for them", metadata: ["refused": "\(count)", "last": "\(why)"])
    }

    /// The refusals of the last ten minutes in one sentence; nil without any.
    package func words(now: Timestamp) -> String? {
        let state = state.withLock { $0 }
        guard state.count > 0, now - state.last < Self.shownFor else { return nil }
        let refused = state.count.counted("write was refused", "writes were refused")
        return "\(refused) since \(RFC3339.format(state.since)), the last at \(RFC3339.format(state.last)): \(state.why)"
    }
}
