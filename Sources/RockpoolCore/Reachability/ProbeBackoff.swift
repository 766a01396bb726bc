// The interval between probes: 0.5 s doubling to 2 s while writes or requests wait, ± 20 % (docs/outbox.md#reachability).

/// The time of the last contact or probe, and the state of the backoff.
struct ProbeBackoff: Hashable, Sendable {
    private(set) var last: Timestamp
    /// −20…20.
    private(set) var jitter = 0
    private var attempts = 0

    init(now: Timestamp) { last = now }

    /// The time from the last contact, or the first failure, to the next probe while something waits.
    var delay: TimeSpan { TimeSpan.milliseconds(500 << Int64(min(attempts, 2))).jittered(jitter) }

    /// Called after a response, or at the first failure: restarts the backoff.
    mutating func reset(now: Timestamp, random: Double) {
        attempts = 0
        mark(now, random: random)
    }

    /// Called after an unsuccessful probe.
    mutating func advance(now: Timestamp, random: Double) {
        attempts = min(attempts + 1, 2)
        mark(now, random: random)
    }

    /// Makes the next probe due immediately.
    mutating func expire() {
        attempts = 0
        last = .distantPast
    }

    private mutating func mark(_ now: Timestamp, random: Double) {
        last = now
        jitter = Int((max(0, min(1, random)) * 40).rounded()) - 20
    }
}

extension TimeSpan {
    /// The span changed by `percent` hundredths, which may be negative.
    func jittered(_ percent: Int) -> TimeSpan {
        let share = TimeSpan(milliseconds: milliseconds.percent(abs(percent)))
        return percent < 0 ? self - share : self + share
    }
}
