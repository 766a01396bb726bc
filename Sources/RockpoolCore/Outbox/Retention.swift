// How long an operation is kept after its end, and from when on its going is announced (outbox.md §1.1, §1.3 *purged*).

/// The times of keeping. Nothing that may yet be sent by itself ever goes.
package struct Retention: Hashable, Sendable {
    /// Delivered operations: for the status document, and for a client's key that comes again.
    package var delivered: TimeSpan
    /// Those that were refused, given up or replaced.
    package var failed: TimeSpan
    /// Unproved ones (`OutboxShare.unproved`) that were refused or wait for a credential: nobody may ever come back for them.
    package var unproved: TimeSpan

    /// - Parameters:
    ///   - failed: `cleanup.failed_after`.
    ///   - unproved: `cleanup.unproved_after`.
    package init(delivered: TimeSpan = .days(7), failed: TimeSpan, unproved: TimeSpan = .forever) {
        self.delivered = delivered
        self.failed = failed
        self.unproved = unproved
    }

    /// As the configuration says.
    package init(_ settings: CleanupSettings) { self.init(failed: settings.failedAfter, unproved: settings.unprovedAfter) }

    /// Refused by the upstream, and nobody has decided what is to become of it: its purge is announced, and it is written down first.
    package static let announced: Set<OperationState> = [.dead, .conflicted]

    /// When an operation in `state` that ended at `endedAt` may go; nil while its state is none to end in.
    package func purgeAt(_ state: OperationState, endedAt: Timestamp) -> Timestamp? {
        switch state {
        case .delivered: endedAt + delivered
        case .dead, .conflicted, .cancelled, .superseded: endedAt + failed
        case .pending, .inflight, .uncertain, .parked: nil
        }
    }

    /// How long before its purge one is announced: the last sixth, 5 of 30 days.
    package var notice: TimeSpan { .milliseconds(failed.milliseconds / 6) }

    /// The same of an unproved one, 4 of 24 hours.
    package var unprovedNotice: TimeSpan { .milliseconds(unproved.milliseconds / 6) }

    /// The moment to announce at `now`; nil when there is nothing to announce (yet).
    package func announcedPurge(_ state: OperationState, endedAt: Timestamp?, now: Timestamp) -> Timestamp? {
        guard Self.announced.contains(state), let endedAt, let moment = purgeAt(state, endedAt: endedAt) else { return nil }
        return moment - notice <= now ? moment : nil
    }

    /// The same of an operation that may be an unproved one, whose time is shorter.
    package func announcedPurge(of operation: Operation, now: Timestamp) -> Timestamp? {
        let announced = announcedPurge(operation.state, endedAt: operation.endedAt, now: now)
        guard let since = operation.expiresSince, since + unproved - unprovedNotice <= now else { return announced }
        return min(since + unproved, announced ?? .distantFuture)
    }
}

extension Operation {
    /// Since when an unproved operation has waited for somebody who may never come; nil for any other, and for one that may have taken
    /// effect.
    fileprivate var expiresSince: Timestamp? {
        guard isUnproved, lostAt == nil else { return nil }
        switch state {
        case .dead: return endedAt
        // The store keeps the moment of the parking there.
        case .parked: return nextAttemptAt
        case .pending, .inflight, .uncertain, .conflicted, .delivered, .cancelled, .superseded: return nil
        }
    }
}
