// The retention time of ended operations, and the time at which their purge is announced (docs/outbox.md#retention *purged*).

/// Retention times. An operation that may still be sent automatically is never purged, except a parked unproved one.
package struct Retention: Hashable, Sendable {
    /// Delivered operations: kept for the status document, and for repeated requests with a client's key.
    package var delivered: TimeSpan
    /// Operations that were refused, given up or replaced.
    package var failed: TimeSpan
    /// Unproved operations (`OutboxShare.unproved`) that were refused or wait for a credential: their client may never return.
    package var unproved: TimeSpan

    /// - Parameters:
    ///   - failed: `cleanup.failed_after`.
    ///   - unproved: `cleanup.unproved_after`.
    package init(delivered: TimeSpan = .days(7), failed: TimeSpan, unproved: TimeSpan = .forever) {
        self.delivered = delivered
        self.failed = failed
        self.unproved = unproved
    }

    /// Uses the times of the configuration.
    package init(_ settings: CleanupSettings) { self.init(failed: settings.failedAfter, unproved: settings.unprovedAfter) }

    /// States refused by the upstream that await a decision: their purge is announced, and they are exported first.
    package static let announced: Set<OperationState> = [.dead, .conflicted]

    /// Returns the purge time of an operation in `state` that ended at `endedAt`; nil for a state that does not end.
    package func purgeAt(_ state: OperationState, endedAt: Timestamp) -> Timestamp? {
        switch state {
        case .delivered: endedAt + delivered
        case .dead, .conflicted, .cancelled, .superseded: endedAt + failed
        case .pending, .inflight, .uncertain, .parked: nil
        }
    }

    /// The notice before a purge: the last sixth, 5 of 30 days.
    package var notice: TimeSpan { .milliseconds(failed.milliseconds / 6) }

    /// The notice for an unproved operation, 4 of 24 hours.
    package var unprovedNotice: TimeSpan { .milliseconds(unproved.milliseconds / 6) }

    /// Returns the purge time to announce at `now`; nil when there is nothing to announce (yet).
    package func announcedPurge(_ state: OperationState, endedAt: Timestamp?, now: Timestamp) -> Timestamp? {
        guard Self.announced.contains(state), let endedAt, let moment = purgeAt(state, endedAt: endedAt) else { return nil }
        return moment - notice <= now ? moment : nil
    }

    /// The same for an operation that may be unproved, with its shorter retention time.
    package func announcedPurge(of operation: QueuedWrite, now: Timestamp) -> Timestamp? {
        let announced = announcedPurge(operation.state, endedAt: operation.endedAt, now: now)
        guard let since = operation.expiresSince, since + unproved - unprovedNotice <= now else { return announced }
        return min(since + unproved, announced ?? .distantFuture)
    }
}

extension QueuedWrite {
    /// The time since when an unproved operation has waited for a client that may never return; nil for any other, and for one that may
    /// have taken effect.
    fileprivate var expiresSince: Timestamp? {
        guard isUnproved, lostAt == nil else { return nil }
        switch state {
        case .dead: return endedAt
        // The store keeps the time of the parking in this field.
        case .parked: return nextAttemptAt
        case .pending, .inflight, .uncertain, .conflicted, .delivered, .cancelled, .superseded: return nil
        }
    }
}
