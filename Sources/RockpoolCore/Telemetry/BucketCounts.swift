// Numbers counted in buckets of any bounds, for scrapers (docs/reference/metrics.md#outbox).

/// Counts of values by upper bound.
package struct BucketCounts: Hashable, Sendable {
    /// Bounds for times in the outbox, in seconds: from a moment to a week.
    package static let waits: [Double] = [0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600, 14_400, 86_400, 604_800]
    /// Bounds for numbers of attempts.
    package static let attempts: [Double] = [1, 2, 3, 5, 10, 20, 50]

    /// Upper bounds, each inclusive, ascending; one more bucket counts larger values.
    package let bounds: [Double]
    /// The count of each bucket, not cumulative.
    package private(set) var counts: [Int]
    package private(set) var sum: Double = 0

    package init(_ bounds: [Double]) {
        self.bounds = bounds
        counts = [Int](repeating: 0, count: bounds.count + 1)
    }

    package init(_ latencies: LatencyHistogram) {
        (bounds, counts, sum) = (LatencyHistogram.bounds, latencies.counts, latencies.sum)
    }

    package var count: Int { counts.reduce(0, +) }

    /// Adds the values of counts with the same bounds.
    package mutating func add(_ other: BucketCounts) {
        guard bounds == other.bounds else { return }
        counts = zip(counts, other.counts).map(+)
        sum += other.sum
    }

    package mutating func record(_ value: Double) {
        counts[bounds.firstIndex { value <= $0 } ?? bounds.count] += 1
        sum += value
    }
}
