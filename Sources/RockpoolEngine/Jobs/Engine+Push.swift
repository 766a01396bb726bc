// The outbox sent now, instead of at its time (docs/reference/admin-api.md#sync `POST /v1/sync/push`).
package import RockpoolCore
import RockpoolStore

/// What a push has done by the time it is told.
package struct PushReport: Hashable, Sendable {
    /// Operations that were made due.
    package var flushed = 0
    /// Delivered meanwhile.
    package var delivered = 0
    /// What is open now, by state.
    package var open: [OperationState: Int] = [:]
}

extension Engine {
    /// Makes everything that waits due, and waits until the replayer has nothing more that may go now.
    ///
    /// - Parameter limit: the longest it waits.
    /// - Throws: `DataStoreError`.
    package func push(within limit: Duration) async throws -> PushReport {
        let deadline = ContinuousClock.now + limit
        let before = try await data.deliveredTotal()
        var report = PushReport(flushed: try await flush())
        while true {
            let version = events.version
            var isSending = false
            for upstream in configuration.upstreams where reachability.isUsable(upstream.name) {
                isSending = try await data.standing(upstream: upstream.name, now: now()).isSending || isSending
            }
            guard isSending, await events.change(after: version, before: deadline) else { break }
        }
        report.delivered = try await data.deliveredTotal() - before
        report.open = try await data.counts().filter { !$0.key.hasEnded }
        return report
    }
}
