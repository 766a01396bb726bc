// How well writes arrive and reads are answered while upstreams are away, beside the targets (docs/reference/admin-api.md#status).

/// Figures since the start of the server.
package struct SyncFigures: Hashable, Sendable {
    /// The share of ended writes that are delivered.
    package static let successTarget = 0.99
    /// The most that may meet a conflict, as a share of ended writes.
    package static let conflictTarget = 0.01
    /// The most seconds from the first sending of a write to its delivery.
    package static let secondsTarget = 5.0
    /// The share of reads that are answered while their upstream is away.
    package static let offlineReadTarget = 0.9

    /// Writes that were delivered, and those that the upstream has refused for good.
    package var delivered = 0
    package var refused = 0
    /// How often a write met a conflict, decided by a strategy or not.
    package var conflicts = 0
    /// Seconds from the first sending of a delivered write to its end.
    package var seconds = BucketCounts(BucketCounts.waits)
    /// Reads whose upstream was away: answered from a copy that was not fresh, and those without a copy.
    package var offlineReads = 0
    package var offlineMisses = 0

    package init() {}

    /// Nil before the first write has ended.
    package var successRatio: Double? { share(delivered, of: delivered + refused) }
    package var conflictRatio: Double? { share(conflicts, of: delivered + refused) }
    /// Nil before the first delivery.
    package var meanSeconds: Double? { seconds.count == 0 ? nil : seconds.sum / Double(seconds.count) }
    /// The share of deliveries within `secondsTarget`.
    package var inTimeRatio: Double? {
        let inTime = zip(seconds.bounds, seconds.counts).filter { $0.0 <= Self.secondsTarget }.reduce(0) { $0 + $1.1 }
        return share(inTime, of: seconds.count)
    }
    /// Nil before the first such read.
    package var offlineReadRatio: Double? { share(offlineReads, of: offlineReads + offlineMisses) }

    private func share(_ part: Int, of all: Int) -> Double? { all > 0 ? Double(part) / Double(all) : nil }
}
