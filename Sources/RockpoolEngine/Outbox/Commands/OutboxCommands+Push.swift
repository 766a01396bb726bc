// Sends the outbox now instead of at the scheduled times (docs/reference/admin-api.md#sync `POST /v1/sync/push`).
import RockpoolCore
import RockpoolStore

extension OutboxCommands {
    /// Makes every waiting operation due, and waits until no more operations can be sent now.
    ///
    /// - Parameter limit: the maximum time to wait.
    /// - Throws: `DataStoreError`.
    package func push(within limit: Duration) async throws -> PushReport {
        let deadline = ContinuousClock.now + limit
        let before = try await data.deliveredTotal()
        var report = PushReport(flushed: try await notifier.flush())
        while true {
            let version = events.version
            var isSending = false
            for upstream in active.configuration.upstreams where reachability.isUsable(upstream.name) {
                isSending = try await data.standing(upstream: upstream.name, now: now()).isSending || isSending
            }
            guard isSending, await events.change(after: version, before: deadline) else { break }
        }
        report.delivered = try await data.deliveredTotal() - before
        report.open = try await data.counts().filter { !$0.key.hasEnded }
        return report
    }
}
