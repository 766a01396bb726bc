// Decides whether the wall clock is trusted for age-based deletion (docs/storage.md#clock, "clock jump ahead").

/// Compares the wall clock with a steady clock. After a jump ahead of more than a day nothing is purged by age until an upstream's `Date`
/// confirms the time, so that a wrong hardware clock does not empty the cache.
package struct ClockTrust: Equatable, Sendable {
    /// The deviation that a suspended machine, a leap second or a slow clock may cause.
    package static let tolerance = TimeSpan.days(1)

    /// The amount by which the clock has jumped ahead; nil while it is trusted.
    package private(set) var doubt: TimeSpan?
    private var wall: Timestamp
    private var steady: TimeSpan

    /// - Parameters:
    ///   - lastSeen: The wall clock at the last activity of the previous run; nil without one.
    ///   - steady: A clock with an arbitrary zero that also advances while the machine sleeps.
    package init(lastSeen: Timestamp?, wall: Timestamp, steady: TimeSpan) {
        (self.wall, self.steady) = (wall, steady)
        if let lastSeen, wall - lastSeen > Self.tolerance { doubt = wall - lastSeen }
    }

    /// Compares both clocks again.
    /// - Returns: True if the wall clock is trusted.
    package mutating func observe(wall: Timestamp, steady: TimeSpan) -> Bool {
        let jump = (wall - self.wall) - (steady - self.steady)
        (self.wall, self.steady) = (wall, steady)
        if jump > Self.tolerance { doubt = (doubt ?? .zero) + jump }
        // The clock was set back.
        if let doubt, jump < .zero, doubt + jump <= Self.tolerance { self.doubt = nil }
        return doubt == nil
    }

    /// Called with the `Date` of an upstream's response (RFC 9110 §6.6.1).
    package mutating func confirm(_ date: Timestamp, wall: Timestamp) {
        if (date - wall).magnitude <= Self.tolerance { doubt = nil }
    }
}
