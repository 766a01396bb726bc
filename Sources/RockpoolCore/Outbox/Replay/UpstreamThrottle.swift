// The concurrency limit of one upstream: nothing while it is unreachable or throttles, then one, two, four … (docs/outbox.md#gate).
import HeapModule

/// The gate of one upstream: a circuit breaker with a ramp.
struct UpstreamThrottle: Sendable {
    /// The maximum number of concurrent operations per upstream: a slow upstream does not block another.
    static let widest = 32

    private(set) var isReachable = false
    /// The end of a pause that the upstream requested (429, 503).
    private(set) var pausedUntil: Timestamp?
    /// The current concurrency limit; doubles with every answer, and falls back to one after a failure, a pause or a change of
    /// reachability.
    private(set) var width = 1
    /// The number of operations in flight.
    private(set) var running = 0
    /// Open operations that are pending, uncertain or in flight.
    var waiting = 0
    /// Operations that may be sent, lowest rank first. Tickets may be out of date.
    var ready = Heap<ReplayMachine.Ticket>()

    mutating func forgetOperations() { (running, waiting, ready) = (0, 0, Heap()) }

    mutating func mayPass(now: Timestamp) -> Bool {
        if let pausedUntil, pausedUntil <= now { self.pausedUntil = nil }
        return isReachable && running < width && pausedUntil == nil
    }

    mutating func turned(isReachable: Bool) {
        if isReachable != self.isReachable { width = 1 }
        self.isReachable = isReachable
    }

    mutating func left() { running += 1 }

    mutating func came() { running = max(0, running - 1) }

    /// Widens or narrows the gate after an attempt, and pauses it where the upstream requested that.
    mutating func learn(from outcome: AttemptOutcome, disposition: Disposition) {
        switch outcome {
        case .answered where !disposition.isCaptive: width = min(Self.widest, width * 2)
        case .answered, .failed: width = 1
        }
        if let moment = disposition.pauseUpstreamUntil { pause(until: moment) }
    }

    /// Shifts `pausedUntil` after the wall clock was set back.
    mutating func setBack(by span: TimeSpan) { pausedUntil = pausedUntil.map { $0 - span } }

    mutating func resume() { pausedUntil = nil }

    mutating func pause(until moment: Timestamp) {
        pausedUntil = max(pausedUntil ?? moment, moment)
        width = 1
    }
}
