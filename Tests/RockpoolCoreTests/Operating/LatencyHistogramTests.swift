// Buckets at their bounds, quantiles, and the exposed metrics.
import RockpoolCore
import Testing

@Suite struct LatencyHistogramTests {
    private func histogram(_ seconds: [Double]) -> LatencyHistogram {
        seconds.reduce(into: LatencyHistogram()) { $0.record(seconds: $1) }
    }

    @Test(arguments: [(0, 0), (0.0005, 0), (0.00051, 1), (1, 10), (1.01, 11), (10, 13), (10.01, 14), (1e9, 14)])
    func aBoundBelongsToItsBucket(_ seconds: Double, _ bucket: Int) {
        #expect(histogram([seconds]).counts.firstIndex(of: 1) == bucket)
    }

    @Test(
        arguments: [
            ([], 0.5, nil), ([0.004], 1, 0.005), ([0.004, 0.004], 0.5, 0.00375), ([0.3, 0.3, 0.3, 20], 1, 10),
            ([0.0001, 0.9], 0.5, 0.0005),
        ] as [([Double], Double, Double?)])
    func quantilesLieWithinTheirBucket(_ seconds: [Double], _ share: Double, _ expected: Double?) {
        let found = histogram(seconds).quantile(share)
        #expect(found == expected || abs((found ?? -1) - (expected ?? -1)) < 1e-9, "\(String(describing: found))")
    }

    @Test func aDifferenceIsWhatCameBetween() {
        let before = histogram([0.004, 3]), after = before + histogram([0.2])
        #expect((after - before).counts == histogram([0.2]).counts && (after - before).count == 1)
        #expect(abs((after - before).sum - 0.2) < 1e-9)
    }

    @Test func aScrapeIsCumulativeAndEscaped() {
        var metrics = MetricsText()
        metrics.add("x_total", kind: .counter, help: "Of \\ and\nlines.", by: "name", values: [("a\"b\\c\nd", 2)])
        metrics.add("x_seconds", help: "Time.", by: "verdict", histograms: [("hit", BucketCounts(histogram([0.0004, 0.004, 30])))])
        let lines = metrics.text.split(separator: "\n").map(String.init)
        #expect(lines.starts(with: ["# HELP x_total Of \\\\ and\\nlines.", "# TYPE x_total counter", #"x_total{name="a\"b\\c\nd"} 2"#]))
        #expect(lines.contains(#"x_seconds_bucket{verdict="hit",le="0.0005"} 1"#))
        #expect(lines.contains(#"x_seconds_bucket{verdict="hit",le="10.0"} 2"#))
        #expect(lines.contains(#"x_seconds_bucket{verdict="hit",le="+Inf"} 3"#) && lines.contains(#"x_seconds_count{verdict="hit"} 3"#))
    }
}
