// Sends the outbox now instead of at the scheduled times (docs/reference/admin-api.md#sync `POST /v1/sync/push`).
import RockpoolCore
import RockpoolStore

extension OutboxCommands {
    /// Makes every waiting operation due, and waits until no more operations can be sent now.
    ///
    /// - Parameters:
    ///   - limit: the maximum time to wait.
    ///   - anyway: true to send also what `Retry-After` holds back; otherwise the push does not wait for it.
    /// - Throws: `DataStoreError`.
    package func push(within limit: Duration, anyway: Bool = false) async throws -> PushReport {
        let deadline = ContinuousClock.now + limit
        let before = try await data.deliveredTotal()
        var report = PushReport(flushed: try await flush(anyway: anyway).flushed)
        while true {
            let version = events.version
            var isSending = false
            let paused = notifier.pauses.current(now: now())
            for upstream in active.configuration.upstreams where reachability.isUsable(upstream.name) && paused[upstream.name] == nil {
                isSending = try await data.standing(upstream: upstream.name, now: now()).isSending || isSending
            }
            guard isSending, await events.change(after: version, before: deadline) else { break }
        }
        report.delivered = try await data.deliveredTotal() - before
        let pauses = notifier.pauses.current(now: now())
        report.held = RetryHold.among(try await data.openOperations(), pauses: pauses, now: now())
        report.open = try await data.counts().filter { !$0.key.hasEnded }
        return report
    }
}
