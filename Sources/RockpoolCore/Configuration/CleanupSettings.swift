// The settings of cleanup (docs/storage.md#cleanup).

/// The schedule and the age limits of cleanup (docs/storage.md#cleanup).
package struct CleanupSettings: Hashable, Sendable {
    package var interval = TimeSpan.minutes(15)
    package var expiredAfter = TimeSpan.days(7)
    package var failedAfter = TimeSpan.days(30)
    /// How long a refused or parked operation of a principal with an unproved credential is kept.
    package var unprovedAfter = TimeSpan.hours(24)
    /// The percentage of free pages above which a full VACUUM runs, 0…100.
    package var vacuumWhenFreePercent = 25

    package init() {}
}
