// What an upstream's `Retry-After`, or its pause, holds back (docs/outbox.md#steering; RFC 9110 §10.2.3).
import HTTPTypes

/// The pending operations of one upstream that wait because it demands so.
package struct RetryHold: Hashable, Sendable {
    package var upstream: String
    /// The number of operations.
    package var operations: Int
    /// The first moment at which one of them may be sent.
    package var until: Timestamp

    package init(upstream: String, operations: Int, until: Timestamp) {
        self.upstream = upstream
        self.operations = operations
        self.until = until
    }

    /// Returns the holds among `operations`, by the name of the upstream. `pauses` are the ends of pauses of whole upstreams.
    package static func among(_ operations: [QueuedWrite], pauses: [String: Timestamp], now: Timestamp) -> [RetryHold] {
        var holds: [String: RetryHold] = [:]
        for operation in operations {
            guard let moment = operation.heldUntil(pause: pauses[operation.upstream], now: now) else { continue }
            var hold = holds[operation.upstream] ?? RetryHold(upstream: operation.upstream, operations: 0, until: moment)
            hold.operations += 1
            hold.until = min(hold.until, moment)
            holds[operation.upstream] = hold
        }
        return holds.values.sorted { $0.upstream < $1.upstream }
    }
}

extension QueuedWrite {
    /// True if its last answer named a moment before which it is not to be sent again.
    package func waitsForRetryAfter(now: Timestamp) -> Bool {
        state == .pending && nextAttemptAt > now && result?.head.fields.contains(.retryAfter) == true
    }

    /// Returns until when its upstream demands that it waits; nil if it may be sent. `pause` is the end of a pause of the whole upstream.
    package func heldUntil(pause: Timestamp?, now: Timestamp) -> Timestamp? {
        guard state == .pending else { return nil }
        let own = waitsForRetryAfter(now: now) ? nextAttemptAt : now
        let moment = max(own, pause ?? now)
        return moment > now ? moment : nil
    }
}
