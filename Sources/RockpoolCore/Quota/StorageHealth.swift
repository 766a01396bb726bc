// Tracks whether a store is writable, from the results of its own writes (docs/storage.md#faults).

/// The outcome of the last writes to one store. While they fail, only an occasional attempt is permitted, so that a broken disk is not
/// accessed for every exchange and its recovery is detected without a restart.
package struct StorageHealth: Equatable, Sendable {
    /// The kind of fault, as reported by `/readyz` and `/v1/storage`.
    package enum Fault: String, Hashable, Sendable {
        /// ENOSPC, EDQUOT.
        case full
        /// EIO, and any other error of the disk.
        case failing
        /// The file system is read-only, or permissions are missing.
        case readOnly = "read-only"
        /// A check of the pages found damage; the file is set aside at the next start.
        case damaged

        /// The time until the next attempt. Space is freed sooner than a disk recovers; damage is permanent.
        package var pause: TimeSpan {
            switch self {
            case .full: .seconds(5)
            case .failing, .readOnly: .minutes(1)
            case .damaged: .forever
            }
        }
    }

    /// A current fault.
    package struct Trouble: Equatable, Sendable {
        package var fault: Fault
        package var since: Timestamp
        /// The system's error message.
        package var detail: String
        /// The earliest time of the next write attempt.
        var retryAt: Timestamp
    }

    /// The change caused by a report.
    package enum Change: Equatable, Sendable { case none, fell(Fault), recovered }

    /// Nil: no fault.
    package private(set) var trouble: Trouble?

    package init() {}

    /// Called when a write has failed.
    package mutating func failed(_ fault: Fault, detail: String, now: Timestamp) -> Change {
        let isKnown = trouble?.fault == fault
        if trouble?.fault == .damaged { return .none }
        trouble = Trouble(fault: fault, since: isKnown ? trouble?.since ?? now : now, detail: detail, retryAt: now + fault.pause)
        return isKnown ? .none : .fell(fault)
    }

    /// Called when a write has succeeded.
    package mutating func wrote() -> Change {
        guard let trouble, trouble.fault != .damaged else { return .none }
        self.trouble = nil
        return .recovered
    }

    /// True if a write may start now. During a fault one attempt per pause is permitted.
    package mutating func mayWrite(now: Timestamp) -> Bool {
        guard let trouble else { return true }
        // After the clock was set back, the pause must not be extended.
        guard now >= trouble.retryAt || now < trouble.since else { return false }
        self.trouble?.retryAt = now + trouble.fault.pause
        return true
    }
}

/// Compares the wall clock with a steady clock (docs/storage.md#clock, "clock jump ahead"). After a jump ahead of more than a day nothing
/// is purged by age until an upstream's `Date` confirms the time, so that a wrong hardware clock does not empty the cache.
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
