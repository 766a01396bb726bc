// Durations of exchanges, counted in buckets: for scrapers, which sum over servers, and for the dashboard.

/// Counts of durations by upper bound. Sums and differences of histograms are histograms.
package struct LatencyHistogram: Hashable, Sendable {
    /// Upper bounds of the buckets, in seconds, each inclusive; one more bucket counts longer durations.
    package static let bounds: [Double] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

    /// The count of each bucket, not cumulative; the last is for durations longer than every bound.
    package private(set) var counts = [Int](repeating: 0, count: bounds.count + 1)
    /// The sum of all durations, in seconds.
    package private(set) var sum: Double = 0

    package init() {}

    package var count: Int { counts.reduce(0, +) }

    /// - Parameter count: the number of durations that this one stands for.
    package mutating func record(seconds: Double, count: Int = 1) {
        let bucket = Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count
        counts[bucket] += count
        sum += seconds * Double(count)
    }

    /// Returns the quantile for a share of 0…1, in seconds, interpolated linearly within its bucket; nil for an empty histogram. In the
    /// last bucket it is the last bound.
    package func quantile(_ share: Double) -> Double? {
        let total = count
        guard total > 0 else { return nil }
        let rank = share * Double(total)
        var below = 0
        for (bucket, count) in counts.enumerated() where count > 0 {
            if Double(below + count) >= rank {
                guard bucket < Self.bounds.count else { break }
                let start = bucket == 0 ? 0 : Self.bounds[bucket - 1]
                return start + (Self.bounds[bucket] - start) * max(0, rank - Double(below)) / Double(count)
            }
            below += count
        }
        return Self.bounds.last
    }

    package static func + (a: Self, b: Self) -> Self { a.combined(with: b, sign: 1) }

    /// Returns the durations recorded since `b`, an earlier snapshot of `a`.
    package static func - (a: Self, b: Self) -> Self { a.combined(with: b, sign: -1) }

    private func combined(with other: Self, sign: Int) -> Self {
        var result = self
        for bucket in counts.indices { result.counts[bucket] += sign * other.counts[bucket] }
        result.sum = max(0, result.sum + Double(sign) * other.sum)
        return result
    }
}
