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
