// Whether the wall clock is believed when something would be thrown away for its age (storage.md §7, "clock jump ahead").

/// Compares the clock that people set with one that nobody sets. After a jump ahead of more than a day nothing is purged for its age until
/// an upstream's `Date` says the same: an empty cache is no answer to a wrong battery.
package struct ClockTrust: Equatable, Sendable {
    /// What a suspended machine, a leap or a slow clock may make of it.
    package static let tolerance = TimeSpan.days(1)

    /// By how much the clock has jumped ahead; nil while it is believed.
    package private(set) var doubt: TimeSpan?
    private var wall: Timestamp
    private var steady: TimeSpan

    /// - Parameters:
    ///   - lastSeen: the wall clock when the last run was seen at work; nil when there was none.
    ///   - steady: of a clock that counts from any moment on, and while the machine sleeps.
    package init(lastSeen: Timestamp?, wall: Timestamp, steady: TimeSpan) {
        (self.wall, self.steady) = (wall, steady)
        if let lastSeen, wall - lastSeen > Self.tolerance { doubt = wall - lastSeen }
    }

    /// Looks at both clocks again.
    /// - Returns: whether the wall clock is believed.
    package mutating func observe(wall: Timestamp, steady: TimeSpan) -> Bool {
        let jump = (wall - self.wall) - (steady - self.steady)
        (self.wall, self.steady) = (wall, steady)
        if jump > Self.tolerance { doubt = (doubt ?? .zero) + jump }
        // Set back to where it was.
        if let doubt, jump < .zero, doubt + jump <= Self.tolerance { self.doubt = nil }
        return doubt == nil
    }

    /// An upstream has said what time it is (RFC 9110 §6.6.1).
    package mutating func confirm(_ date: Timestamp, wall: Timestamp) {
        if (date - wall).magnitude <= Self.tolerance { doubt = nil }
    }
}
