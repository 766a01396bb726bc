// How long an operation is kept after its end, and from when on its going is announced (outbox.md §1.1, §1.3 *purged*).

/// The two times of keeping. Nothing that has not ended ever goes.
package struct Retention: Hashable, Sendable {
    /// Delivered operations: for the status document, and for a client's key that comes again.
    package var delivered: TimeSpan
    /// Those that were refused, given up or replaced.
    package var failed: TimeSpan

    /// - Parameter failed: `cleanup.failed_after`.
    package init(delivered: TimeSpan = .days(7), failed: TimeSpan) {
        self.delivered = delivered
        self.failed = failed
    }

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

    /// The moment to announce at `now`; nil when there is nothing to announce (yet).
    package func announcedPurge(_ state: OperationState, endedAt: Timestamp?, now: Timestamp) -> Timestamp? {
        guard Self.announced.contains(state), let endedAt, let moment = purgeAt(state, endedAt: endedAt) else { return nil }
        return moment - notice <= now ? moment : nil
    }
}
