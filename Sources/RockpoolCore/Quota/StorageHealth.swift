// Whether a store can be written to, as its own writes show (storage.md §7).

/// What the last writes of one store came to. While they fail, only a try now and then is let through: a broken disk is not asked for
/// every exchange, and found well again without a restart.
package struct StorageHealth: Equatable, Sendable {
    /// What is wrong, as `/readyz` and `/v1/storage` say it.
    package enum Fault: String, Hashable, Sendable {
        /// ENOSPC, EDQUOT.
        case full
        /// EIO, and whatever else a disk says that is no answer.
        case failing
        /// The file system, or our rights on it.
        case readOnly = "read-only"
        /// A check of the pages found damage; a start sets the file aside.
        case damaged

        /// Until the next try. Room comes back sooner than disks do; damage stays.
        package var pause: TimeSpan {
            switch self {
            case .full: .seconds(5)
            case .failing, .readOnly: .minutes(1)
            case .damaged: .forever
            }
        }
    }

    /// A fault while it lasts.
    package struct Trouble: Equatable, Sendable {
        package var fault: Fault
        package var since: Timestamp
        /// In the words of the system.
        package var detail: String
        /// When a write may be tried again.
        var retryAt: Timestamp
    }

    /// What a report changed.
    package enum Change: Equatable, Sendable { case none, fell(Fault), recovered }

    /// nil: all is well.
    package private(set) var trouble: Trouble?

    package init() {}

    /// A write failed.
    package mutating func failed(_ fault: Fault, detail: String, now: Timestamp) -> Change {
        let isKnown = trouble?.fault == fault
        if trouble?.fault == .damaged { return .none }
        trouble = Trouble(fault: fault, since: isKnown ? trouble?.since ?? now : now, detail: detail, retryAt: now + fault.pause)
        return isKnown ? .none : .fell(fault)
    }

    /// A write was done.
    package mutating func wrote() -> Change {
        guard let trouble, trouble.fault != .damaged else { return .none }
        self.trouble = nil
        return .recovered
    }

    /// Whether to begin a write now. In trouble one of many may, each pause.
    package mutating func mayWrite(now: Timestamp) -> Bool {
        guard let trouble else { return true }
        // A clock that was set back must not make the pause longer.
        guard now >= trouble.retryAt || now < trouble.since else { return false }
        self.trouble?.retryAt = now + trouble.fault.pause
        return true
    }
}
