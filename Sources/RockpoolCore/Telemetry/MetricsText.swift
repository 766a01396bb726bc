// The text a Prometheus server scrapes (exposition format 0.0.4): one family after the other, help and type before its samples.

/// The builder of a scrape's text.
package struct MetricsText: Sendable {
    package enum Kind: String, Sendable { case counter, gauge, histogram }
    package typealias Labels = KeyValuePairs<String, String>

    package private(set) var text = ""

    package init() {}

    /// Appends one family without labels.
    package mutating func add(_ name: String, kind: Kind, help: String, value: some Numeric & CustomStringConvertible) {
        begin(name, kind: kind, help: help)
        sample(name, labels: [:], value: "\(value)")
    }

    /// Appends one family with a sample for each value of a label; the values must be few.
    package mutating func add(
        _ name: String, kind: Kind, help: String, by label: String, values: [(String, some Numeric & CustomStringConvertible)]
    ) {
        begin(name, kind: kind, help: help)
        for (value, number) in values { sample(name, labels: [label: value], value: "\(number)") }
    }

    /// Appends one family with a sample for each combination of labels; they must be few.
    package mutating func add(_ name: String, kind: Kind, help: String, samples: [(Labels, some Numeric & CustomStringConvertible)]) {
        begin(name, kind: kind, help: help)
        for (labels, value) in samples { sample(name, labels: labels, value: "\(value)") }
    }

    /// Appends one family of histograms, with cumulative buckets as the format requires.
    package mutating func add(_ name: String, help: String, by label: String, histograms: [(String, BucketCounts)]) {
        begin(name, kind: .histogram, help: help)
        for (value, histogram) in histograms {
            var below = 0
            for (bound, count) in zip(histogram.bounds, histogram.counts) {
                below += count
                sample(name + "_bucket", labels: [label: value, "le": "\(bound)"], value: "\(below)")
            }
            sample(name + "_bucket", labels: [label: value, "le": "+Inf"], value: "\(histogram.count)")
            sample(name + "_sum", labels: [label: value], value: "\(histogram.sum)")
            sample(name + "_count", labels: [label: value], value: "\(histogram.count)")
        }
    }

    private mutating func begin(_ name: String, kind: Kind, help: String) {
        text += "# HELP \(name) \(Self.escaped(help))\n# TYPE \(name) \(kind.rawValue)\n"
    }

    private mutating func sample(_ name: String, labels: Labels, value: String) {
        let list = labels.map { "\($0.key)=\"\(Self.escaped($0.value, quotes: true))\"" }.joined(separator: ",")
        text += list.isEmpty ? "\(name) \(value)\n" : "\(name){\(list)} \(value)\n"
    }

    private static func escaped(_ text: String, quotes: Bool = false) -> String {
        var result = ""
        for character in text.unicodeScalars {
            switch character {
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\"" where quotes: result += "\\\""
            default: result.unicodeScalars.append(character)
            }
        }
        return result
    }
}

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

/// Counts of values by upper bound (docs/reference/metrics.md#outbox).
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
