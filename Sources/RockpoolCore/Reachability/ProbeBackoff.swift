// How long to wait between probes: 0.5 s doubling to 2 s while something waits, ± 20 % (outbox.md §2.5).

/// When the upstream was last heard or asked, and how patient to be.
struct ProbeBackoff: Hashable, Sendable {
    private(set) var last: Timestamp
    /// −20…20.
    private(set) var jitter = 0
    private var attempts = 0

    init(now: Timestamp) { last = now }

    /// From the last sign of life, or the first failure, to the next probe while something waits.
    var delay: TimeSpan { TimeSpan.milliseconds(500 << Int64(min(attempts, 2))).jittered(jitter) }

    /// It was heard, or has only now fallen silent: patience starts anew.
    mutating func reset(now: Timestamp, random: Double) {
        attempts = 0
        mark(now, random)
    }

    /// A probe was in vain.
    mutating func advance(now: Timestamp, random: Double) {
        attempts = min(attempts + 1, 2)
        mark(now, random)
    }

    /// The next probe is due at once.
    mutating func expire() {
        attempts = 0
        last = .distantPast
    }

    private mutating func mark(_ now: Timestamp, _ random: Double) {
        last = now
        jitter = Int((max(0, min(1, random)) * 40).rounded()) - 20
    }
}

extension TimeSpan {
    /// Longer or shorter by `percent` hundredths.
    func jittered(_ percent: Int) -> TimeSpan {
        let share = TimeSpan(milliseconds: milliseconds.percent(abs(percent)))
        return percent < 0 ? self - share : self + share
    }
}
