// Sends what waits for time at once, except what an upstream demands to hold back (docs/outbox.md#steering).
package import RockpoolCore
import RockpoolStore

/// The result of a flush.
package struct FlushReport: Hashable, Sendable {
    /// Operations that were made due.
    package var flushed = 0
    /// Operations that wait because their upstream demands so, by upstream.
    package var held: [RetryHold] = []

    package init(flushed: Int = 0, held: [RetryHold] = []) {
        self.flushed = flushed
        self.held = held
    }
}

extension OutboxCommands {
    /// Makes every operation due now that waits for a time.
    /// - Parameter anyway: true to send also what `Retry-After` holds back.
    /// - Throws: `DataStoreError`.
    package func flush(anyway: Bool = false) async throws -> FlushReport {
        let pending = try await data.openOperations().filter { $0.state == .pending }
        for upstream in Set(pending.map(\.upstream)) {
            notifier.overrule(upstream)
            if anyway { notifier.resume(upstream) }
        }
        let moment = now()
        let held = anyway ? [] : RetryHold.among(pending, pauses: notifier.pauses.current(now: moment), now: moment)
        let kept = anyway ? [] : pending.filter { $0.waitsForRetryAfter(now: moment) }.map(\.sequence)
        let count = try await notifier.flush(except: kept)
        return FlushReport(flushed: max(0, count - held.reduce(0) { $0 + $1.operations } + kept.count), held: held)
    }

    /// Returns until when the upstream demands that a retried operation waits; nil if it may be sent. With `anyway` the demand is ignored.
    func hold(on operation: QueuedWrite, anyway: Bool) -> Timestamp? {
        if anyway {
            notifier.resume(operation.upstream)
            return nil
        }
        let moment = now()
        var retried = operation
        retried.state = .pending
        if operation.state != .pending { retried.nextAttemptAt = moment }
        return retried.heldUntil(pause: notifier.pauses.current(now: moment)[operation.upstream], now: moment)
    }
}
